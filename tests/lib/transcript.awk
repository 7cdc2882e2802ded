# SPDX-License-Identifier: PostgreSQL
#
# Takes a page apart whose ```sql blocks are commands for psql, each followed by a ```text
# block with what psql prints.
#
#   awk -v part=commands -f transcript.awk PAGE     a script for psql
#   awk -v part=output -f transcript.awk PAGE       what it has to print
#
# Both have a line "@@ N" before block N, so that a difference names its block. A ```sql block
# without a ```text block prints nothing. Other blocks are not looked at. A block that is left
# open, or a ```text block that belongs to no commands, ends with status 1.

function broken(why)
{
    printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"
    failed = 1
    exit 1
}

/^```/ && inside == "" {
    inside = substr($0, 4)
    if (inside == "")
        inside = "other"
    if (inside == "sql") {
        block++
        wants_output = 1
        print (part == "commands" ? "\\echo @@ " : "@@ ") block
    } else if (inside == "text") {
        if (!wants_output)
            broken("a text block that belongs to no commands")
        wants_output = 0
    }
    next
}

/^```$/ {
    inside = ""
    next
}

inside == "sql" && part == "commands" { print }
inside == "text" && part == "output" { print }

END {
    if (!failed && inside != "")
        broken("a block is not closed")
    if (!failed && block == 0)
        broken("no commands found")
}
