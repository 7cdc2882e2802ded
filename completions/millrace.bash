# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# Completion of `millrace` for bash: commands and options as --help has them, so that there is
# no list here to keep, and names of queues and schedules where the database answers within a
# second.

# The words that the command line so far is about: a command, for some a verb, and arguments.
# Options and their values are left out. Sets _millrace_words.
_millrace_split()
{
    local i word
    _millrace_words=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --*=*) ;;
        -) _millrace_words+=(-) ;;
        -*)
            # bash takes --queue=mail apart at the equals sign
            if [ "${COMP_WORDS[i + 1]:-}" = = ]; then
                ((i += 2))
            elif _millrace_takes_value "$word"; then
                ((i++))
            fi
            ;;
        *) _millrace_words+=("$word") ;;
        esac
    done
}

_millrace_commands()
{
    "$_millrace_program" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

# Commands with verbs say `usage: millrace dead list` in their help.
_millrace_verbs()
{
    "$_millrace_program" "$1" --help 2>/dev/null | sed -n "s/^usage: millrace $1 \([a-z]\{1,\}\)\( .*\)\{0,1\}$/\1/p"
}

# The lines of the help that are options, of the command and its verb.
_millrace_option_lines()
{
    "$_millrace_program" "${_millrace_words[@]:0:$_millrace_depth}" --help 2>/dev/null | grep -E '^  --?[a-z]'
}

# Whether the option $1 is followed by a value.
_millrace_takes_value()
{
    _millrace_measure
    _millrace_option_lines | grep -qE "^  $1 [A-Z]"
}

# How many of the words are the command itself: 0, 1, or 2 with a verb.
_millrace_measure()
{
    _millrace_depth=${#_millrace_words[@]}
    [ "$_millrace_depth" -le 1 ] || _millrace_depth=1
    if [ "${#_millrace_words[@]}" -gt 1 ] && _millrace_verbs "${_millrace_words[0]}" | grep -qxF -e "${_millrace_words[1]}"; then
        _millrace_depth=2
    fi
}

# Names that the database knows: of queues (queue) or of schedules (cron).
_millrace_names()
{
    local dsn=() i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [ "${COMP_WORDS[i]}" != --dsn ] || dsn=(--dsn "${COMP_WORDS[i + 1]}")
    done
    PGCONNECT_TIMEOUT=1 timeout 1 "$_millrace_program" "$1" list --names "${dsn[@]}" 2>/dev/null </dev/null
}

# Which words a queue can stand behind: a command with its verb, and how many arguments come
# before it.
_millrace_wants_queue()
{
    local arguments=$((${#_millrace_words[@]} - _millrace_depth))
    case "${_millrace_words[*]:0:$_millrace_depth} $arguments" in
    'status 0' | 'pause 0' | 'resume 0' | 'work 0' | 'move 0' | 'shadow 0') return 0 ;;
    'dead list 0' | 'dead purge 0' | 'queue show 0' | 'queue set 0') return 0 ;;
    'capture add 1' | 'capture remove 1' | 'capture enable 1' | 'capture disable 1') return 0 ;;
    esac
    return 1
}

# The same for schedules.
_millrace_wants_schedule()
{
    local arguments=$((${#_millrace_words[@]} - _millrace_depth))
    case "${_millrace_words[*]:0:$_millrace_depth} $arguments" in
    'cron set 0' | 'cron remove 0' | 'cron next 0' | 'cron enable 0' | 'cron disable 0' | 'cron run 0') return 0 ;;
    esac
    return 1
}

# The modes of bench, from its own answer to a wrong one.
_millrace_modes()
{
    "$_millrace_program" bench '?' 2>&1 </dev/null | sed -n 's/^hint: The modes are \(.*\)\.$/\1/p' | sed 's/, /\n/g'
}

# Candidates from standard input, a line each, that begin with $1. Names of queues and schedules
# may have blanks: they are quoted for the shell.
_millrace_reply()
{
    local candidate
    while IFS= read -r candidate; do
        case $candidate in
        "$1"*) COMPREPLY+=("$(printf '%q' "$candidate")") ;;
        esac
    done
}

_millrace()
{
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local _millrace_program=${COMP_WORDS[0]} _millrace_words=() _millrace_depth=0
    COMPREPLY=()
    _millrace_split
    _millrace_measure
    if [ "$before" = = ] && [ "$COMP_CWORD" -gt 2 ]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    elif [ "$current" = = ]; then
        current=
    fi
    case $before in
    --queue)
        _millrace_reply "$current" < <(_millrace_names queue)
        return
        ;;
    --file | -c | --config | --data)
        compopt -o default 2>/dev/null || true
        return
        ;;
    esac
    if [ "$_millrace_depth" -gt 0 ] && [[ $before == -* ]] && _millrace_takes_value "$before"; then
        return
    fi
    if [[ $current == -* ]]; then
        if [ "$_millrace_depth" -eq 0 ]; then
            _millrace_reply "$current" < <(printf '%s\n' --help --version)
        else
            _millrace_reply "$current" < <(_millrace_option_lines | sed 's/^  \(--\{0,1\}[a-z-]*\).*/\1/' | sort -u)
        fi
    elif [ "$_millrace_depth" -eq 0 ]; then
        _millrace_reply "$current" < <(_millrace_commands)
    elif [ "${#_millrace_words[@]}" -eq 1 ] && [ -n "$(_millrace_verbs "${_millrace_words[0]}")" ]; then
        _millrace_reply "$current" < <(_millrace_verbs "${_millrace_words[0]}")
    elif [ "${_millrace_words[0]}" = bench ]; then
        _millrace_reply "$current" < <(_millrace_modes)
    elif _millrace_wants_queue; then
        _millrace_reply "$current" < <(_millrace_names queue)
    elif _millrace_wants_schedule; then
        _millrace_reply "$current" < <(_millrace_names cron)
    fi
}

complete -F _millrace millrace
