#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# What the pages point to is there: files, headings, and paths named in the text.

bats_require_minimum_version 1.5.0

pages()
{
    printf '%s\n' "$MR_ROOT"/README.md "$MR_ROOT"/CHANGELOG.md "$MR_ROOT"/docs/*.md
}

# The anchors that a page has, in the way that forges make them of headings.
anchors()
{
    sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed -e 's/[^a-z0-9 _-]//g' -e 's/ /-/g'
}

@test "links between pages lead somewhere" {
    local page link file anchor bad=0
    while read -r page; do
        while read -r link; do
            file=${link%%#*} anchor=
            [[ $link != *'#'* ]] || anchor=${link#*#}
            if [ -z "$file" ]; then file=$page; else file=$(dirname "$page")/$file; fi
            if [ ! -e "$file" ] || { [ -n "$anchor" ] && ! anchors "$file" | grep -qx "$anchor"; }; then
                echo "${page#"$MR_ROOT"/}: $link leads nowhere"
                bad=1
            fi
        done < <(grep -oE '\]\([^)]+\)' "$page" | sed -e 's/^](//' -e 's/)$//' | grep -v '^https\{0,1\}:')
    done < <(pages)
    [ $bad -eq 0 ]
}

@test "paths named in the text exist" {
    local page path bad=0
    while read -r page; do
        while read -r path; do
            if ! compgen -G "$MR_ROOT/$path" >/dev/null; then
                echo "${page#"$MR_ROOT"/}: there is no $path"
                bad=1
            fi
        done < <(grep -oE '`(sql|src|tests|bench|docs|tools)/[A-Za-z0-9_./*-]*' "$page" | tr -d '`' | grep -v 'NAME\|NNNN')
    done < <(pages)
    [ $bad -eq 0 ]
}

@test "targets of make named in the text exist" {
    local target
    for target in $(pages | xargs grep -ohE '`make [a-z]+' | sed 's/.* //' | sort -u); do
        grep -qE "^$target:" "$MR_ROOT/Makefile" || { echo "no make $target"; return 1; }
    done
    grep -q 'make test' "$MR_ROOT/README.md"
    grep -q 'make run' "$MR_ROOT/README.md"
}

@test "benchmarks named in the text exist" {
    local item
    for item in $(pages | xargs grep -ohE '`bench/run [a-z_]+' | sed 's/.* //' | sort -u); do
        "$MR_ROOT/bench/run" --help | grep -qE "^  $item +" || { echo "no bench/run $item"; return 1; }
    done
}
