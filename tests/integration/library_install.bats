#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# libmillrace as it is delivered: what it exports, what its header needs, what is installed, and
# that header, map, reference and manual name the same things.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    export HEADER=$MR_ROOT/include/millrace/millrace.h LIBRARY=$MR_BUILD/src/client
}

# The functions that the header declares, one a line. A typedef of a function is none.
prototypes()
{
    sed -e 's|//.*||' -e ':join' -e '/\\$/ { N; b join }' "$HEADER" | grep -v '^#' | tr -s ' \n' ' ' | sed 's/\([;{}]\) */\1\n/g' |
        grep -E '^[a-z].*\bmr_[a-z_]+\(.*\);$' | grep -v '^typedef'
}

declared()
{
    prototypes | grep -oE '\bmr_[a-z_]+\(' | tr -d '(' | sort -u
}

mapped()
{
    sed -n 's/^ *\(mr_[a-z_]*\);$/\1/p' "$MR_ROOT/src/client/millrace.map"
}

# Its macros, without the guard of the header.
macros()
{
    sed -n 's/^#define \(MR_[A-Z_]*\).*/\1/p' "$HEADER"
    sed -n 's/^ *\(MR_[A-Z_]*\)\( = [-0-9]*\)\{0,1\},.*/\1/p' "$HEADER"
}

types()
{
    grep -oE '^(typedef )?(struct|enum) mr_[a-z_]+' "$HEADER" | grep -oE 'mr_[a-z_]+' | sort -u
    echo mr_handler
}

needs_no_sanitizer()
{
    ! ldd "$LIBRARY/libmillrace.so" | grep -q libasan || skip 'a build with sanitizers cannot be linked by other programs: run it without SANITIZE'
}

@test "the map lists what the header declares, in order" {
    [ "$(declared | wc -l)" -gt 40 ]
    diff <(declared) <(mapped)
    mapped | sort -c
}

@test "the shared library exports what the map lists, and nothing else" {
    diff <(mapped) <(nm -D --defined-only "$LIBRARY/libmillrace.so" | sed -n 's/^[0-9a-f]* [^A] //p' | sed 's/@.*//' | sort)
    readelf -d "$LIBRARY/libmillrace.so" | grep -q 'SONAME.*\[libmillrace\.so\.0\]'
}

@test "the static library has no other global names either" {
    diff <(mapped) <(nm -g --defined-only "$LIBRARY/libmillrace.a" | sed -n 's/^[0-9a-f]* [A-Z] //p' | sort)
}

@test "the library never prints and never exits" {
    run ! grep -wE 'printf|puts|fputs|perror|exit|_exit|abort|stdout|stderr' <(nm -u "$LIBRARY/libmillrace.o" | sed 's/^ *U //')
}

@test "the header compiles alone as C99 and as C++11" {
    cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c "$HEADER"
    echo '#include <millrace/millrace.h>
int main(void) { mr_conn_options a = MR_CONN_OPTIONS_INIT; mr_job_spec b = MR_JOB_SPEC_INIT; mr_claim_options c = MR_CLAIM_OPTIONS_INIT;
mr_worker_options d = MR_WORKER_OPTIONS_INIT; mr_worker_counts e = MR_WORKER_COUNTS_INIT; mr_breaker_options f = MR_BREAKER_OPTIONS_INIT; return !(a.size && b.size && c.size && d.size && e.size && f.size); }' >"$BATS_TEST_TMPDIR/use.c"
    cc -std=c99 -pedantic -Wall -Wextra -Werror -I "$MR_ROOT/include" -fsyntax-only "$BATS_TEST_TMPDIR/use.c"
    command -v c++ >/dev/null || skip 'there is no C++ compiler: tools/deps test'
    c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c++ "$HEADER"
    c++ -std=c++11 -pedantic -Wall -Wextra -Werror -I "$MR_ROOT/include" -fsyntax-only -x c++ "$BATS_TEST_TMPDIR/use.c"
}

@test "the header has the version of the project" {
    [ "$(sed -n 's/^#define MR_VERSION "\(.*\)"/\1/p' "$HEADER")" = "$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$MR_ROOT/meson.build" | head -n 1)" ]
}

@test "the reference has an entry for every function, type and macro, and no other" {
    local page=$MR_ROOT/docs/c.md
    diff <({ declared; macros; types; } | sort -u) \
        <(grep -oE '^(### .*|\| `MR_[A-Z_]+`)' "$page" | grep -oE '\b(mr|MR)_[A-Za-z_]+' | sort -u)
    # each function with the words of the header
    diff <(awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$page" | tr -s ' \n' ' ' | sed 's/; */;\n/g' | grep . | sort) \
        <(prototypes | sort)
}

@test "every function has a manual page" {
    [ -d "$MR_BUILD/docs/man" ] || skip 'built without manual pages: tools/deps build, which brings scdoc, and build again'
    diff <(declared) <(cd "$MR_BUILD/docs/man" && printf '%s\n' mr_*.3 | sed 's/\.3$//' | sort)
    local name page
    for name in $(declared); do
        # a link, or the page itself
        page=$(sed -n 's|^\.so man3/||p' "$MR_BUILD/docs/man/$name.3")
        sed -n '/^\.SH NAME/,/^\.SH SYNOPSIS/p' "$MR_BUILD/docs/man/${page:-$name.3}" | grep -qw "$name" || { echo "no NAME $name"; return 1; }
    done
}

# What `make install` puts where, and that a program can be made of it.
@test "the examples build against what is installed, shared and static, and run" {
    needs_no_sanitizer
    local root=$BATS_TEST_TMPDIR/root config flags
    meson install -C "$MR_BUILD" --no-rebuild --destdir "$root" >"$BATS_TEST_TMPDIR/log" 2>&1 || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
    config=$(find "$root" -name millrace.pc)
    export PKG_CONFIG_PATH=${config%/*} PKG_CONFIG_SYSROOT_DIR=
    prefix=$(pkg-config --variable=prefix millrace)
    flags="--define-variable=prefix=$root$prefix"
    # shellcheck disable=SC2046,SC2086
    cc -o "$BATS_TEST_TMPDIR/shared" "$MR_ROOT/examples/c/worker.c" $(pkg-config $flags --cflags --libs millrace)
    # shellcheck disable=SC2046,SC2086
    cc -o "$BATS_TEST_TMPDIR/static" "$MR_ROOT/examples/c/worker.c" $(pkg-config $flags --cflags millrace) \
        "$(find "$root" -name libmillrace.a)" $(pkg-config --libs libpq hiredis libzstd libcurl) -pthread
    fresh_db
    for program in shared static; do
        sql "select millrace.enqueue('send_invoice', '{\"n\": 1}', queue => '$program')" >/dev/null
        LD_LIBRARY_PATH=$(dirname "$(find "$root" -name libmillrace.so)") \
            "$BATS_TEST_TMPDIR/$program" "$program" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
        wait_until 30 completed "$program" 1
        kill -TERM $!
        wait $!
        grep -q 'attempt 1: {"n": 1}' "$BATS_TEST_TMPDIR/out"
    done
    drop_db
}

completed()
{
    [ "$(sql "select count(*) from millrace.jobs where queue = '$1' and status = 'completed'")" -eq "$2" ]
}

@test "the examples: an order and its job together, and a worker that does it" {
    local examples=$MR_BUILD/examples/c
    fresh_db
    sql 'create table orders (order_no int primary key)'
    "$examples/example_producer" "$MILLRACE_DSN" 17
    run -1 "$examples/example_producer" "$MILLRACE_DSN" 17
    run -1 "$examples/example_producer" "$MILLRACE_DSN" '1 }, {'
    run -1 "$examples/example_producer" 'host=/nowhere' 1
    [ "$(sql "select millrace.depth('mail')")" -eq 1 ]
    sql "select millrace.enqueue('other', queue => 'mail')" >/dev/null
    "$examples/example_worker" mail >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
    wait_until 30 completed mail 1
    wait_until 30 died
    kill -TERM $!
    wait $!
    grep -q 'attempt 1: {"order_no": 17}' "$BATS_TEST_TMPDIR/out"
    MILLRACE_DSN='postgresql://[' run -1 "$examples/example_worker" mail
    [[ $output == *'worker: '*'hint: '* ]]
    drop_db
}

died()
{
    [ "$(sql "select error from millrace.dead_letters where queue = 'mail'")" = 'only invoices are sent here' ]
}

@test "an example of a worker is about thirty lines" {
    [ "$(sed -e 's|//.*||' -e '/^ *[{}]*$/d' "$MR_ROOT/examples/c/worker.c" | grep -c .)" -le 33 ]
}
