# SPDX-License-Identifier: PostgreSQL
# shellcheck disable=SC2154  # api comes from api_up
# shellcheck shell=bash
#
# The tests of the dashboard, after lib/server, lib/daemon and lib/api:
#
#   start_browser    for setup_file(): one for all tests of the file, if there is any
#   stop_browser     for teardown_file()
#   need_browser     skips where there is none
#   browse NAME      runs tests/browser/NAME.js against the daemon of api_up
#
# Pictures are in build/test-logs/shots.

# Prints what is not there.
browser_lacks()
{
    if [ ! -e "$MR_BUILD/tests/browser/installed" ]; then
        echo 'playwright-core and axe-core are not installed: tools/npm build'
    elif ! find_chromium >/dev/null; then
        echo 'there is no Chromium: tools/deps --optional browser'
    elif ! command -v node >/dev/null; then
        echo 'there is no Node: tools/deps test'
    fi
}

find_chromium()
{
    command -v chromium || command -v chromium-browser || command -v google-chrome
}

need_browser()
{
    local lack
    lack=$(browser_lacks)
    [ -z "$lack" ] || skip "$lack"
    export MR_BROWSER_PACKAGES=$MR_BUILD/tests/browser MR_CHROMIUM MR_SHOTS=$MR_BUILD/test-logs/shots
    MR_CHROMIUM=$(find_chromium)
    mkdir -p "$MR_SHOTS"
}

start_browser()
{
    [ -z "$(browser_lacks)" ] || return 0
    need_browser
    node "$MR_ROOT/tests/browser/lib/browser.js" >"$MR_SCRATCH/browser" 2>"$MR_SCRATCH/browser.log" 3>&- &
    export MR_BROWSER_PID=$! MR_BROWSER
    wait_until 60 grep -q . "$MR_SCRATCH/browser" || { cat "$MR_SCRATCH/browser.log" >&2; return 1; }
    MR_BROWSER=$(cat "$MR_SCRATCH/browser")
}

stop_browser()
{
    [ -n "${MR_BROWSER_PID:-}" ] || return 0
    kill "$MR_BROWSER_PID"
    wait_until 20 is_gone "$MR_BROWSER_PID"
}

browse()
{
    MR_API=$api timeout 240 node "$MR_ROOT/tests/browser/$1.js" 3>&-
}
