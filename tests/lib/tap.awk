# SPDX-License-Identifier: PostgreSQL
#
# Counts a TAP stream. Prints "PASSED FAILED SKIPPED" and then one line "skip NAME: REASON" or
# "fail WHY" each. Only top-level results count; a subtest shows up as its own summary line. A
# plan that does not match what ran is a failure, and so is a missing plan: a stream that was
# cut off looks exactly like that.
#
# A result that TAP marks as not yet expected to pass is counted as skipped, whatever its outcome.

BEGIN { plan = -1 }

/^1\.\.[0-9]+/ {
    plan = substr($1, 4) + 0
    if (plan == 0 && match(tolower($0), /# *skip/)) {
        skipped++
        note[++notes] = "skip all: " reason($0, RSTART + RLENGTH)
    }
    next
}

/^(not )?ok([ \t]|$)/ {
    ran++
    if (match(tolower($0), /# *(skip|todo)/)) {
        skipped++
        note[++notes] = "skip " name(substr($0, 1, RSTART - 1)) ": " reason($0, RSTART + RLENGTH)
    } else if ($1 == "ok")
        passed++
    else
        failed++
    next
}

/^Bail out!/ {
    failed++
    note[++notes] = "fail " $0
}

function name(text)
{
    sub(/^(not )?ok *[0-9]* *-? */, "", text)
    sub(/ *$/, "", text)
    return text == "" ? "test " ran : text
}

function reason(text, from)
{
    text = substr(text, from)
    sub(/^(ped)?[: \t]*/, "", text)
    return text == "" ? "no reason given" : text
}

END {
    if (plan < 0) {
        failed++
        note[++notes] = "fail no plan: the output is cut off or not TAP"
    } else if (plan != ran + 0) {
        failed += plan > ran ? plan - ran : 1
        note[++notes] = "fail planned " plan ", ran " ran + 0
    }
    print passed + 0, failed + 0, skipped + 0
    for (i = 1; i <= notes; i++)
        print note[i]
}
