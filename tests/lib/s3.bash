# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# An S3 server of the test's own (tools/s3server: OpenStack Swift), after lib/server:
#
#   need_s3                  skips the test where Swift is not installed
#   start_s3 [CLOCK]         starts one without data, its clock CLOCK seconds ahead; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are those of an administrator
#   start_s3_again [CLOCK]   starts it again, with its data and the port of before
#   stop_s3, kill_s3         ends it, gracefully or at once; stop_s3 ends the proxy, too
#   s3_bucket NAME           makes a bucket
#   s3_address BUCKET[/PREFIX] [STYLE]   prints the address for MILLRACE_BLOBS
#   s3_native METHOD PATH [CURL OPTION...]   the same objects by Swift's own API: /BUCKET/KEY
#   s3_count BUCKET          how many objects are in it
#
# And in front of it, for trouble that a healthy server does not make (s3_proxy.py has the list):
#
#   start_s3_proxy           from now on s3_address leads through it
#   s3_fault JSON...         what it does from now on; without an argument nothing
#   s3_requests [PATTERN]    how many requests it has seen
#
# tools/s3server has what it can and cannot do. Everything is on 127.0.0.1 and in $MR_SCRATCH.

s3server=$MR_ROOT/tools/s3server

need_s3()
{
    "$s3server" there 2>/dev/null || skip 'OpenStack Swift is not installed: tools/deps test'
}

start_s3()
{
    s3_dir=$(mktemp -d "$MR_SCRATCH/s3.XXXXXX") || return
    export s3_dir
    eval "$("$s3server" env "$s3_dir")"
    start_s3_again "$@"
}

start_s3_again()
{
    "$s3server" start "$s3_dir" "$@" || return
    s3_port=$(cat "$s3_dir/port")
    export s3_port
}

start_s3_proxy()
{
    rm -f "$s3_dir/proxy.port"
    python3 "$MR_ROOT/tests/lib/s3_proxy.py" "$s3_dir/proxy" "$s3_port" >"$s3_dir/proxy.out" 2>&1 3>&- &
    echo $! >"$s3_dir/proxy.pid"
    wait_until 30 test -s "$s3_dir/proxy.port"
}

s3_fault()
{
    printf '%s\n' "$@" >"$s3_dir/proxy.faults.new"
    : >"$s3_dir/proxy.log"
    mv "$s3_dir/proxy.faults.new" "$s3_dir/proxy.faults"
}

s3_requests()
{
    grep -c -- "${1:-}" "$s3_dir/proxy.log" || true
}

# The process need not be of this shell: a file's setup starts it for its tests.
stop_s3_proxy()
{
    local pid
    [ -s "$s3_dir/proxy.pid" ] || return 0
    pid=$(cat "$s3_dir/proxy.pid")
    kill "$pid" 2>/dev/null || true
    wait_until 30 is_gone "$pid"
    rm -f "$s3_dir/proxy.pid"
}

stop_s3()
{
    stop_s3_proxy
    "$s3server" stop "$s3_dir"
}

kill_s3()
{
    "$s3server" kill "$s3_dir"
}

s3_address()
{
    local port=$s3_port scheme=http host=127.0.0.1
    [ ! -s "$s3_dir/proxy.pid" ] || port=$(cat "$s3_dir/proxy.port")
    [ ! -e "$s3_dir/tls.pem" ] || scheme=https
    [ "${2:-path}" = path ] || host=localhost
    printf 's3://%s?endpoint=%s://%s:%s&style=%s\n' "$1" "$scheme" "$host" "$port" "${2:-path}"
}

s3_native()
{
    "$s3server" native "$s3_dir" "$@"
}

s3_bucket()
{
    "$s3server" bucket "$s3_dir" "$1"
}

s3_count()
{
    "$s3server" count "$s3_dir" "$1"
}
