# SPDX-License-Identifier: PostgreSQL
#
# Counts cmocka's normal output (its TAP mode reports a skipped test as a failed one). Prints
# the same lines as tap.awk. A program may run several groups; each ends with its own counts.

/^\[  PASSED  \] [0-9]+ test\(s\)/ { passed += $4 }
/^\[  FAILED  \] [0-9]+ test\(s\)/ { failed += $4 }
/^\[  SKIPPED \] [0-9]+ test\(s\)/ { skipped += $4; next }

# Printed once when it happens and once in the closing list.
/^\[  SKIPPED \] / {
    if (!seen[$4]++)
        note[++notes] = "skip " $4 ": " (last == "" ? "no reason given" : last)
}

# A test that skips itself says why on the line before.
{ last = $0 ~ /^\[/ ? "" : $0 }

END {
    print passed + 0, failed + 0, skipped + 0
    for (i = 1; i <= notes; i++)
        print note[i]
}
