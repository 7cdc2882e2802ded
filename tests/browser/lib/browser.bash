# SPDX-License-Identifier: PostgreSQL
# shellcheck disable=SC2154  # api comes from api_up
# shellcheck shell=bash
#
# The tests of the dashboard, after lib/server, lib/daemon and lib/api:
#
#   need_browser     skips where there is none
#   browse NAME      runs tests/browser/NAME.js against the daemon of api_up
#
# Pictures are in build/test-logs/shots.

need_browser()
{
    export MR_BROWSER_PACKAGES=$MR_BUILD/tests/browser MR_CHROMIUM MR_SHOTS=$MR_BUILD/test-logs/shots
    [ -e "$MR_BROWSER_PACKAGES/installed" ] || skip 'playwright-core and axe-core are not installed: tools/npm build'
    MR_CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
        skip 'there is no Chromium: tools/deps --optional browser'
    command -v node >/dev/null || skip 'there is no node'
    mkdir -p "$MR_SHOTS"
}

browse()
{
    MR_API=$api timeout 240 node "$MR_ROOT/tests/browser/$1.js" 3>&-
}
