#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The blob store on S3, with a real server and everything that can go wrong between it and us.
load ../lib/server
load ../lib/s3

setup_file()
{
    need_s3
    start_s3
    s3_bucket jobs
    start_s3_proxy
}

teardown_file()
{
    [ -z "${s3_dir:-}" ] || stop_s3
}

setup()
{
    MILLRACE_BLOBS=$(s3_address jobs/"$BATS_TEST_NUMBER")
    export MILLRACE_BLOBS
    s3_fault
}

# Runs one call, `blob [OPTION...] WORD ARGUMENT...`. A machine that is busy with other tests takes its time: only what is about time has limits that are near.
blob()
{
    run "$MR_BUILD/tests/integration/s3/blob_driver" connect=60000 idle=60000 call=300000 "$@"
    [ "$status" -eq 0 ] || {
        echo "$output" >&2
        return 1
    }
}

# ---- objects -----------------------------------------------------------------------------

@test "objects are written, read, listed and removed" {
    blob put a/b=hello c.txt= '~x_-9=3'
    [ "$output" = $'a/b ok 200 1\nc.txt ok 200 1\n~x_-9 ok 200 1' ]
    blob get a/b
    [ "$output" = $'a/b ok 200 1\n5 bytes: hello' ]
    blob get c.txt 0
    [ "$output" = $'c.txt ok 200 1\n0 bytes: ' ]
    blob list
    [ "$output" = $'a/b 5 new\nc.txt 0 new\n~x_-9 1 new' ]
    blob list a/
    [ "$output" = 'a/b 5 new' ]
    blob list '' a/b
    [ "$output" = $'c.txt 0 new\n~x_-9 1 new' ]
    blob put a/b=again
    blob get a/b
    has '5 bytes: again'
    blob delete a/b c.txt '~x_-9'
    [ "$output" = $'a/b ok 200 1\nc.txt ok 200 1\n~x_-9 ok 200 1' ]
    blob list
    [ "$output" = '' ]
}

@test "what lies there is what was written, for everybody" {
    blob put seen=plainly
    [ "$(s3_native GET "/jobs/$BATS_TEST_NUMBER/seen")" = plainly ]
    run s3_native HEAD "/jobs/$BATS_TEST_NUMBER/seen" -I
    has "X-Object-Meta-Sha256: $(printf plainly | sha256sum | cut -d' ' -f1)"
}

@test "200 objects at once, by one connection or by many" {
    blob put_many m/ 200 4500
    [ "$output" = 'ok 200' ]
    blob get_many m/ 200 4500
    [ "$output" = $'ok 200\nsame 200' ]
    blob parallel=1 get_many m/ 20 4500
    [ "$output" = $'ok 20\nsame 20' ]
    blob parallel=256 delete_many m/ 200
    [ "$output" = 'ok 200' ]
    blob list_all
    [ "$output" = '0 in 1 pages' ]
}

@test "an object of 20 MB" {
    blob put_many large 1 20000000
    [ "$output" = 'ok 1' ]
    blob get_many large 1 20000000
    [ "$output" = $'ok 1\nsame 1' ]
}

# The server answers 100 at a time, and not the 1,000 that it is asked for.
@test "220 objects are listed page by page" {
    blob put_many n/ 220 10
    [ "$output" = 'ok 220' ]
    blob list_all n/
    [ "$output" = '220 in 3 pages' ]
    blob list_all n/0001
    [ "$output" = '100 in 1 pages' ]
    blob list n/00021
    [ "$(wc -l <<<"$output")" -eq 10 ]
    blob delete_many n/ 220
    [ "$output" = 'ok 220' ]
    blob list_all
    [ "$output" = '0 in 1 pages' ]
}

@test "2,001 objects are removed by three requests" {
    s3_fault '{"method": "POST", "path": "delete", "do": "answer", "status": 200, "body": "<DeleteResult/>"}'
    blob delete_many n/ 2001
    [ "$output" = 'ok 2001' ]
    [ "$(s3_requests 'POST .*delete')" -eq 3 ]
}

@test "objects of others under the prefix are passed over, also a whole page of them" {
    s3_native PUT "/jobs/$BATS_TEST_NUMBER/a%20b%26c%C3%A4" -d x
    s3_native PUT "/jobs/$BATS_TEST_NUMBER/c%3Cd%3E" -d x
    blob put b=1 d=1
    blob list
    [ "$output" = $'b 1 new\nd 1 new' ]
    s3_fault "{\"method\": \"GET\", \"path\": \"list-type\", \"times\": 1, \"do\": \"answer\", \"status\": 200, \"body\": \"<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>$BATS_TEST_NUMBER/c&lt;d&gt;</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents></ListBucketResult>\"}"
    blob list
    [ "$output" = 'd 1 new' ]
}

@test "removing what is not there is no error" {
    blob put here=1
    blob delete not/there here never
    [ "$output" = $'not/there ok 200 1\nhere ok 200 1\nnever ok 200 1' ]
}

@test "the bucket in the host's name" {
    MILLRACE_BLOBS=$(s3_address jobs/host host)
    blob put a/b=hello
    [ "$output" = 'a/b ok 200 1' ]
    blob get a/b
    has '5 bytes: hello'
    blob list
    [ "$output" = 'a/b 5 new' ]
    blob delete a/b
    [ "$output" = 'a/b ok 200 1' ]
    [ "$(s3_requests '^PUT /host/a/b$')" -eq 1 ]
}

@test "a store that works is found good, and nothing is left of the look" {
    blob probe
    [ "$output" = good ]
    blob list_all
    [ "$output" = '0 in 1 pages' ]
}

# ---- who asks ----------------------------------------------------------------------------

@test "a wrong secret: one request, a hint, and no secret in what is said" {
    export AWS_SECRET_ACCESS_KEY=s3cr3t-that-is-wrong
    blob parallel=1 put a=1 b=2
    has 'a config 403 1: the store answered 403 SignatureDoesNotMatch'
    has 'b config 0 0: the store answered 403 SignatureDoesNotMatch'
    has 'hint: The secret key is not the one of the access key'
    has_not s3cr3t
    [ "$(s3_requests)" -eq 1 ]
    blob probe
    has 'code -24 4: cannot write millrace-probe/'
}

@test "an access key that nobody knows, and one that may not" {
    blob access_key=millrace:nobody secret_key=x put a=1
    has 'config 403 1'
    has 'hint: '
    blob access_key=millrace:guest secret_key=s3cr3t-of-guest get a
    has 'config 403 1: the store answered 403 AccessDenied'
    has 'hint: Allow s3:PutObject'
    blob access_key=millrace:guest secret_key=s3cr3t-of-guest delete a
    has 'a config'
}

@test "no keys" {
    unset AWS_SECRET_ACCESS_KEY
    blob put a=1
    has 'code -24 4: the blob store has no keys'
    has 'AWS_SECRET_ACCESS_KEY'
}

@test "no such bucket" {
    MILLRACE_BLOBS=$(s3_address nowhere)
    blob put a=1
    has 'a config 404 1: the store answered 404 NoSuchBucket'
    has 'hint: Create the bucket, or correct the address.'
    blob get a
    has 'a config 404 1: the store answered 404 NoSuchBucket'
    blob list
    has 'code -24 4: cannot list s3://nowhere at http://127.0.0.1'
    blob delete a
    has 'a config 404 1: the store answered 404 NoSuchBucket'
}

@test "no such object" {
    blob put a=1
    blob get b
    has 'b missing 404 1: the store answered 404 NoSuchKey'
    has 'code -19 3: cannot read b'
}

@test "an address or a key that cannot be" {
    blob put 'a b=1' ../x=1 /y=1 z/=1 'q?x=1' good=1 'ä=1'
    has 'a b rejected 0 0: its key is not made of'
    has '../x rejected 0 0'
    has '/y rejected 0 0'
    has 'z/ rejected 0 0'
    has 'good ok 200 1'
    has 'ä rejected 0 0'
    has 'code -21 3: cannot write a b: its key'
    MILLRACE_BLOBS='s3://jobs?endpoint=ftp://127.0.0.1'
    blob list
    has 'code -24 4: not the address of a blob store: endpoint has to be http'
}

# ---- the store in trouble ----------------------------------------------------------------

@test "500: tried again until it works, or as often as allowed" {
    s3_fault '{"method": "PUT", "times": 2, "do": "answer", "status": 500, "body": "<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"}'
    blob put a=1
    [ "$output" = 'a ok 200 3' ]
    s3_fault '{"do": "answer", "status": 500}'
    blob attempts=3 get a
    has 'a transient 500 3: the store answered 500 without saying why'
    has 'code -4 1: cannot read a'
    [ "$(s3_requests)" -eq 3 ]
    blob attempts=2 list
    has 'code -4 1: cannot list'
    blob attempts=2 delete a
    has 'a transient 500 2'
}

@test "503 slow down: waits as long as it is asked to" {
    blob put a=1
    s3_fault '{"times": 1, "do": "answer", "status": 503, "headers": {"Retry-After": "2"}, "body": "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"}'
    began=$(date +%s%N)
    blob get a
    [ "${output%%$'\n'*}" = 'a ok 200 2' ]
    [ $(($(date +%s%N) - began)) -ge 2000000000 ]
    s3_fault '{"do": "answer", "status": 503, "headers": {"Retry-After": "3600"}, "body": "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"}'
    blob get a
    has 'a transient 503 1: the store answered 503 SlowDown: Please reduce your request rate., and asks to come back in 3600 s'
}

@test "a store that is down for all is not asked for each" {
    s3_fault '{"do": "answer", "status": 500}'
    blob attempts=2 parallel=4 put_many x/ 200 10
    has 'transient 200'
    [ "$(s3_requests)" -le 16 ]
}

@test "a connection that is refused, and a server that comes back" {
    blob put a=1
    stop_s3
    MILLRACE_BLOBS=$(s3_address jobs/"$BATS_TEST_NUMBER")
    blob attempts=2 get a
    has 'a transient 0 2: Failed to connect'
    start_s3_again
    blob get a
    [ "$output" = $'a ok 200 1\n1 bytes: 1' ]
    start_s3_proxy
}

@test "half a body: tried again, and never handed out" {
    blob put_many h 1 100000
    s3_fault '{"method": "GET", "times": 1, "do": "half"}'
    blob get_many h 1 100000
    [ "$output" = $'ok 1\nsame 1' ]
    s3_fault '{"method": "GET", "do": "half"}'
    blob attempts=2 get h000000 100000
    has 'h000000 transient 200 2: '
    has_not bytes:
}

@test "a body that stands still" {
    blob put_many h 1 100000
    s3_fault '{"method": "GET", "do": "stall"}'
    blob attempts=1 idle=1000 get h000000 100000
    has 'h000000 transient 200 1: Operation too slow'
}

@test "an endpoint that hangs: each wait has an end, and so has the call" {
    s3_fault '{"do": "hang"}'
    blob attempts=1 idle=1000 put a=1
    has 'a transient 0 1: Operation too slow'
    blob attempts=1 call=500 put a=1
    has ': it was not done when the time of the call, 500 ms, was up'
}

@test "another thread stops a call" {
    s3_fault '{"do": "hang"}'
    blob parallel=1 stop=300 put a=1 b=2
    has 'a stopped 0 '
    has 'b stopped 0 0: it was told to stop'
    has 'code -15 1: cannot write a: it was told to stop'
    s3_fault '{"do": "answer", "status": 503}'
    blob attempts=100 stop=300 list
    has 'it was told to stop'
}

@test "a connection that ends without an answer" {
    s3_fault '{"times": 1, "do": "close"}'
    blob put a=1
    [ "$output" = 'a ok 200 2' ]
}

# ---- answers that are not what they should be ----------------------------------------------

@test "a wrong checksum: looked at twice, and damaged then" {
    blob put a=hello
    s3_fault '{"method": "GET", "times": 1, "do": "flip"}'
    blob get a
    [ "$output" = $'a ok 200 2\n5 bytes: hello' ]
    s3_fault '{"method": "GET", "do": "flip"}'
    blob get a
    has 'a damaged 200 2: its content does not have the checksum that was stored with it'
    has 'code -26 3: cannot read a'
    has_not bytes:
    s3_fault '{"method": "GET", "do": "cut"}'
    blob get a
    has 'a damaged 200 2: '
}

@test "an object that was replaced behind our back" {
    blob put a=hello
    sum=$(printf hello | sha256sum | cut -d' ' -f1)
    s3_native PUT "/jobs/$BATS_TEST_NUMBER/a" -d world
    blob get a 100 "$sum"
    has 'a damaged 200 2: its content does not have the checksum that was expected'
    blob get a
    has 'a damaged 200 2: it has no checksum'
    blob put a=world
    blob get a 100 "$sum"
    has 'a damaged 200 2: its content does not have the checksum that was expected'
}

@test "an object without its own checksum is good by the one that is expected" {
    s3_native PUT "/jobs/$BATS_TEST_NUMBER/a" -d hello
    blob get a 100 "$(printf hello | sha256sum | cut -d' ' -f1)"
    has '5 bytes: hello'
}

@test "a checksum that is not that of the content is refused by the store" {
    blob put_as a "$(printf other | sha256sum | cut -d' ' -f1)" hello
    has 'a rejected 400 1: the store answered 400 '
    blob get a
    has 'a missing'
    blob put_as a 123 hello
    has 'a rejected 0 0: its checksum is not 64 lower-case digits'
}

@test "an object that is larger than allowed takes no memory" {
    blob put_many h 1 3000000
    blob get h000000 2999999
    has 'h000000 damaged 200 2: it is larger than the 2999999 bytes that it may have'
    s3_fault '{"method": "GET", "do": "chunked"}'
    blob get h000000 2999999
    has 'h000000 damaged 200 2: it is larger than the 2999999 bytes that it may have'
    blob get_many h 1 3000000
    [ "$output" = $'ok 1\nsame 1' ]
}

@test "somebody else answers: nothing is missing or damaged" {
    blob put a=1
    for rule in '"status": 404, "body": "<html>not here</html>"' '"status": 200, "body": "<html>welcome</html>"' \
        '"status": 403, "body": "no"' '"status": 400, "body": ""' '"status": 204'; do
        s3_fault "{\"do\": \"answer\", $rule}"
        blob get a 100 "$(printf 1 | sha256sum | cut -d' ' -f1)"
        has 'a config '
        has 'hint: Look at the endpoint in the address: what answers there is not S3.'
        blob list
        has 'code -24 4: cannot list'
        blob delete a
        has 'a config '
    done
}

@test "lists and answers that are no XML, too long, or of another kind" {
    for body in '<ListBucketResult>' '<ListBucketResult></ListBucketResult>' '<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>' \
        '<ListBucketResult><IsTruncated>perhaps</IsTruncated></ListBucketResult>' \
        '<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>1</Key></Contents></ListBucketResult>'; do
        s3_fault "{\"do\": \"answer\", \"status\": 200, \"body\": \"$body\"}"
        blob list
        has 'answered 200 with something that is not of S3'
    done
    s3_fault '{"do": "answer", "status": 200, "body": "<Wrong/>"}'
    blob delete a b
    has 'a config 200 1: the store answered 200 with something that is not of S3'
    has 'b config 200 1'
}

@test "a redirect is not followed" {
    # shellcheck disable=SC2154 # start_s3 sets it
    s3_fault "{\"do\": \"answer\", \"status\": 307, \"headers\": {\"Location\": \"http://127.0.0.1:$s3_port/jobs/x\"}}"
    blob put a=1
    has 'a config 307 1: the store answered 307'
    has 'hint: Put the endpoint and the region of the bucket into the address.'
    s3_fault '{"do": "answer", "status": 301, "headers": {"x-amz-bucket-region": "eu-west-1"}, "body": "<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message></Error>"}'
    blob put a=1
    has 'a config 301 1: the store answered 301 PermanentRedirect: the bucket is in the region eu-west-1'
    [ "$(s3_native GET "/jobs?prefix=x")" = '' ]
}

@test "keys that a store cannot remove for now are asked for again, alone" {
    blob put a=1 b=2 c=3
    s3_fault "{\"method\": \"POST\", \"times\": 1, \"do\": \"answer\", \"status\": 200, \"headers\": {\"x-amz-request-id\": \"1\"}, \"body\": \"<DeleteResult><Error><Key>$BATS_TEST_NUMBER/b</Key><Code>InternalError</Code><Message>later</Message></Error></DeleteResult>\"}"
    blob delete a b c
    [ "$output" = $'a ok 200 1\nb ok 200 2\nc ok 200 1' ]
    # what the proxy said was done is still there, but for b
    blob list
    [ "$output" = $'a 1 new\nc 1 new' ]
    s3_fault "{\"method\": \"POST\", \"do\": \"answer\", \"status\": 200, \"body\": \"<DeleteResult><Error><Key>$BATS_TEST_NUMBER/b</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>\"}"
    blob delete a b
    has 'a ok 200 1'
    has 'b config 200 1: the store answered AccessDenied: no'
}

# ---- rules -------------------------------------------------------------------------------

@test "rules of the bucket, and a store that has none" {
    blob lifecycle
    [ "$output" = 'days -1' ]
    s3_fault '{"path": "lifecycle", "do": "answer", "status": 404, "body": "<Error><Code>NoSuchLifecycleConfiguration</Code><Message>none</Message></Error>"}'
    blob lifecycle
    [ "$output" = 'days 0' ]
    s3_fault '{"path": "lifecycle", "do": "answer", "status": 200, "body": "<LifecycleConfiguration><Rule><Filter><Prefix></Prefix></Filter><Status>Enabled</Status><Expiration><Days>7</Days></Expiration></Rule></LifecycleConfiguration>"}'
    blob lifecycle
    [ "$output" = 'days 7' ]
    s3_fault '{"path": "lifecycle", "do": "answer", "status": 403, "body": "<Error><Code>AccessDenied</Code></Error>"}'
    blob lifecycle
    [ "$output" = 'days -1' ]
    s3_fault '{"path": "lifecycle", "do": "answer", "status": 500}'
    blob attempts=1 lifecycle
    has 'code -4 1: cannot read the rules of s3://jobs'
}

# ---- other servers: nothing comes behind them ----------------------------------------------

@test "a clock that is wrong" {
    stop_s3
    start_s3_again 3600
    MILLRACE_BLOBS=$(s3_address jobs/"$BATS_TEST_NUMBER")
    blob put a=1
    has 'a config 403 1: the store answered 403 RequestTimeTooSkewed: the clock of this machine is '
    has ' s behind that of the store'
    has 'hint: Set the clock of this machine'
}

@test "https: only with a certificate that is trusted" {
    stop_s3
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost \
        -keyout "$s3_dir/key.pem" -out "$s3_dir/ca.pem" 2>/dev/null
    cat "$s3_dir/ca.pem" "$s3_dir/key.pem" >"$s3_dir/tls.pem"
    start_s3_again
    MILLRACE_BLOBS="$(s3_address jobs/tls)&ca=$s3_dir/ca.pem"
    blob put a=1
    [ "$output" = 'a ok 200 1' ]
    blob get a
    has '1 bytes: 1'
    MILLRACE_BLOBS=$(s3_address jobs/tls)
    blob get a
    has 'a config 0 1: '
    has 'hint: Name the file of the certificate authority in the address: ?ca=FILE.'
    MILLRACE_BLOBS="$(s3_address jobs/tls)&ca=$s3_dir/none.pem"
    blob get a
    has 'a config 0 1: '
    rm "$s3_dir/tls.pem"
    stop_s3
}
