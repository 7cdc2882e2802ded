# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# An S3 server of the test's own (OpenStack Swift with its S3 interface, in one process), after lib/server:
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
# It does: SigV4 with the clock checked, both styles, list of version 2 (100 a page), delete of many, Content-MD5, checksums of bodies. It does not: lifecycle rules
# (it answers a list of objects), regions. Everything is on 127.0.0.1 and in $MR_SCRATCH.

# Debian's module is for Debian's interpreter, which need not be the first one.
s3_python()
{
    local python
    for python in python3 /usr/bin/python3; do
        if "$python" -c 'import swift, eventlet' 2>/dev/null; then
            printf '%s\n' "$python"
            return
        fi
    done
    return 1
}

need_s3()
{
    s3_python >/dev/null || skip 'OpenStack Swift is not installed: tools/deps test'
}

start_s3()
{
    s3_dir=$(mktemp -d "$MR_SCRATCH/s3.XXXXXX") || return
    printf 'millrace test s3cr3t-of-test .admin\nmillrace guest s3cr3t-of-guest\n' >"$s3_dir/users"
    export s3_dir AWS_ACCESS_KEY_ID=millrace:test AWS_SECRET_ACCESS_KEY=s3cr3t-of-test
    unset AWS_SESSION_TOKEN
    start_s3_again "$@"
}

start_s3_again()
{
    rm -f "$s3_dir/ready"
    "$(s3_python)" "$MR_ROOT/tests/lib/s3_server.py" "$s3_dir" "$@" >"$s3_dir/out" 2>&1 3>&- &
    echo $! >"$s3_dir/pid"
    wait_until 180 s3_answers_or_ended
    if ! s3_answers; then
        cat "$s3_dir/out" >&2
        return 1
    fi
    s3_port=$(cat "$s3_dir/port")
    export s3_port
}

s3_answers()
{
    [ -e "$s3_dir/ready" ]
}

s3_answers_or_ended()
{
    s3_answers || ! kill -0 "$(cat "$s3_dir/pid")"
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

# The processes need not be of this shell: a file's setup starts them for its tests.
s3_end()
{
    local pid
    [ -s "$2" ] || return 0
    pid=$(cat "$2")
    kill "-$1" "$pid" 2>/dev/null || true
    wait_until 30 is_gone "$pid"
    rm -f "$2"
}

stop_s3()
{
    s3_end TERM "$s3_dir/proxy.pid"
    s3_end TERM "$s3_dir/pid"
}

kill_s3()
{
    s3_end KILL "$s3_dir/pid"
}

s3_address()
{
    local port=$s3_port scheme=http host=127.0.0.1
    [ ! -s "$s3_dir/proxy.pid" ] || port=$(cat "$s3_dir/proxy.port")
    [ ! -e "$s3_dir/tls.pem" ] || scheme=https
    [ "${2:-path}" = path ] || host=localhost
    printf 's3://%s?endpoint=%s://%s:%s&style=%s\n' "$1" "$scheme" "$host" "$port" "${2:-path}"
}

# Swift forgets its tokens when it ends.
s3_token()
{
    curl -fsS -i -H 'X-Auth-User: millrace:test' -H 'X-Auth-Key: s3cr3t-of-test' "http://127.0.0.1:$s3_port/auth/v1.0" |
        sed -n 's/\r$//; s/^X-Auth-Token: //p'
}

s3_native()
{
    local method=$1 path=$2
    shift 2
    curl -fsS -X "$method" -H "X-Auth-Token: $(s3_token)" "$@" "http://127.0.0.1:$s3_port/v1/AUTH_millrace$path"
}

s3_bucket()
{
    s3_native PUT "/$1"
}

s3_count()
{
    s3_native GET "/$1?limit=10000" | wc -l
}
