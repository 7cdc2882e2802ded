# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
# shellcheck disable=SC2154  # run sets status, output and lines
#
# The run of an example, which checks itself line by line, after lib/server:
#
#   proves NAME N            examples/NAME/run ends well, with N lines that begin with ok
#   leaves_nothing NAME      a run whose program fails leaves nothing behind
#   nothing_left             whether there is nothing in $MR_SCRATCH/left, nor a process of a run whose TMPDIR that was

proves()
{
    TMPDIR=$MR_SCRATCH MR_BUILD=$(dirname "$MR_BIN") run "$MR_ROOT/examples/$1/run" 3>&-
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ok  ' <<<"$output")" -eq "$2" ]
    [ "${lines[-1]}" = 'all as it should be' ]
}

leaves_nothing()
{
    mkdir -m 711 "$MR_SCRATCH/left"
    ln -s /bin/false "$BATS_TEST_TMPDIR/millrace"
    TMPDIR=$MR_SCRATCH/left MR_BUILD=$BATS_TEST_TMPDIR run "$MR_ROOT/examples/$1/run" 3>&-
    [ "$status" -eq 1 ]
    [ -z "$(ls -A "$MR_SCRATCH/left")" ]
}

# Processes that the run has started: all have its directory in their environment.
started_by_run()
{
    grep -lszx "TMPDIR=$MR_SCRATCH/left" /proc/[0-9]*/environ || true
}

# What was started by somebody who was killed may live for a moment longer: for wait_until.
nothing_left()
{
    [ -z "$(ls -A "$MR_SCRATCH/left")$(started_by_run)" ]
}
