#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
#
# A handler as a program that is started for each job:
#
#   millrace work payments --timeout 30s \
#       --run './charge.sh {id} --amount={args.amount}'
#
# Values come as arguments, the whole job as JSON on standard input. The exit status decides: 0 is
# done, 64, 65 and 78 are failures for good, anything else is tried again later. What it writes to
# standard error is logged with the job's id, and its last line becomes the job's error.
set -euo pipefail

id=$1
amount=${2#--amount=}
job=$(cat)

# The number at args.$1, nothing when there is none.
number_arg()
{
    jq -r --arg name "$1" '.args[$name] // empty' <<<"$job"
}

# Not yet: again in a second, this attempt not counted. What is kept in state is there next time.
if [ -n "$(number_arg wait_once)" ] && [ "$(jq -r '.state // empty' <<<"$job")" = '' ]; then
    printf '{"outcome": "snoozed", "delay": 1, "state": "%s"}\n' "$(printf waited | base64)"
    exit 0
fi

# Longer than the timeout: ended from outside, and tried again.
sleep "$(number_arg sleep | grep . || echo 0)"

if ! awk -v amount="$amount" 'BEGIN { exit !(amount > 0) }'; then
    echo "amount must be positive, not $amount" >&2
    exit 1
fi
echo "charging $amount for job $id, attempt $MILLRACE_ATTEMPT" >&2
printf '{"result": {"charged": %s}}\n' "$amount"
