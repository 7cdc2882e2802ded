# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# A terminal for programs that want one, by tmux on a socket of its own:
#
#   load ../lib/terminal
#   open_terminal 80 24 "$MR_BIN" top    columns, rows, the command
#   shows 'text'                         until the screen has it, at most 10 seconds
#   press j Enter                        keys by the names that tmux has for them
#   close_terminal
#
# The command's exit status is written on the screen when it ends: "ended 0".

in_terminal()
{
    tmux -S "$BATS_TEST_TMPDIR/tmux$terminal" -f /dev/null "$@"
}

# A server of tmux's that ends takes its time, so each terminal has one of its own.
open_terminal()
{
    local columns=$1 rows=$2
    shift 2
    terminal=$((${terminal:-0} + 1))
    # shellcheck disable=SC2016  # for the shell inside
    in_terminal new-session -d -s t -x "$columns" -y "$rows" bash -c '"$@"; echo "ended $?"; stty -a; exec sleep 600' - "$@" 3>&-
}

close_terminal()
{
    in_terminal kill-server 2>/dev/null || true
}

screen()
{
    in_terminal capture-pane -p -t t
}

press()
{
    local key
    for key in "$@"; do
        in_terminal send-keys -t t "$key"
    done
}

resize_terminal()
{
    in_terminal resize-window -t t -x "$1" -y "$2"
}

on_screen()
{
    screen | grep -qF -e "$1"
}

shows()
{
    wait_until 15 on_screen "$1" || { screen >&2; return 1; }
}

off_screen()
{
    ! on_screen "$1"
}

hides()
{
    wait_until 15 off_screen "$1" || { screen >&2; return 1; }
}
