#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/term-analytics: what two of its workers do at the same time, and its compose file. What its functions count is tests/sql/term_analytics.sql,
# the whole of it, with kills, tests/fault/term_analytics.bats.

bats_require_minimum_version 1.5.0
load ../lib/server

setup()
{
    fresh_db
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_ROOT/examples/term-analytics/schema.sql"
    sql "insert into terms.term values ('0x7', 100, 1), ('0x8', 200, 1)"
    mkfifo "$BATS_TEST_TMPDIR/first"
    PGAPPNAME=first psql -X -q -A -t -v ON_ERROR_STOP=1 3>&- <"$BATS_TEST_TMPDIR/first" >"$BATS_TEST_TMPDIR/first.out" 2>&1 &
    exec 7>"$BATS_TEST_TMPDIR/first"
}

teardown()
{
    exec 7>&-
    wait
    drop_db
}

# first STATEMENT...: in a session that stays open
first() { printf '%s;\n' "$@" >&7; }
rests() { [ "$(sql "select state from pg_stat_activity where application_name = 'first' and datname = current_database()")" = 'idle in transaction' ]; }
# second STATEMENT: in the background, until it waits for a lock
second()
{
    PGAPPNAME=second psql -X -q -A -t -v ON_ERROR_STOP=1 -c "$1" 3>&- 7>&- >"$BATS_TEST_TMPDIR/second.out" 2>&1 &
    second=$!
    wait_until 30 waits
}
waits() { [ "$(sql "select wait_event_type from pg_stat_activity where application_name = 'second' and datname = current_database()")" = Lock ]; }

@test "a ranking waits for the batch that was told of it, and has its terms" {
    first begin "select terms.refresh_analytics(array['{\"args\": {\"term_id\": \"0x7\"}}'::jsonb])"
    wait_until 30 rests
    # the job that the batch found, or made, is run before the batch has committed
    second "select terms.rank_terms('{}')"
    first commit
    wait $second
    [ "$(sql "select rank from terms.term_analytics where term_id = '0x7'")" = 2 ]
}

@test "of two workers with a term the second has what is newest" {
    sql "select terms.refresh_terms('{0x7}')"
    first begin "select terms.refresh_terms('{0x7}')"
    wait_until 30 rests
    second "select terms.refresh_terms('{0x7}')"
    # while it waits the cascade goes on
    sql "update terms.term set holders = 5 where term_id = '0x7'"
    first commit
    wait $second
    [ "$(sql "select holders from terms.term_analytics where term_id = '0x7'")" = 5 ]
}

@test "the compose file: what it depends on and mounts is there, and the daemons have what their files ask for" {
    python3 -c 'import yaml' 2>/dev/null || skip 'python3-yaml is not installed: tools/deps test'
    cd "$MR_ROOT/examples/term-analytics"
    python3 - <<'PY'
import os
import re
import yaml

services = yaml.safe_load(open("compose.yml"))["services"]
assert {"db", "redis", "indexer", "bridge", "cascade", "analytics", "old-path", "prometheus", "grafana"} <= set(services), services.keys()
for name, service in services.items():
    for other in service.get("depends_on", {}):
        assert other in services, f"{name} depends on {other}"
    assert "image" in service, name
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        if source.startswith("."):
            assert os.path.exists(source), source
    command = service.get("command", "")
    if command[:1] == ["serve"]:
        text = "\n".join(line for line in open(command[2]) if not line.startswith("#"))
        for variable in re.findall(r"\$\{(\w+)\}", text):
            assert variable in service["environment"], f"{name}: {variable}"
for variable in ("QUEUE_POLL_INTERVAL_MS", "QUEUE_RETENTION_HOURS", "MAX_RETRY_ATTEMPTS"):
    assert variable in services["analytics"]["environment"], variable
scrape = yaml.safe_load(open("prometheus/prometheus.yml"))
assert scrape["global"]["scrape_interval"] == "10s"
# What only a bridge's own process knows is asked of that process.
targets = scrape["scrape_configs"][0]["static_configs"][0]["targets"]
assert targets == ["analytics:7070", "bridge:7070"], targets
for target in targets:
    service = services[target.split(":")[0]]
    assert "http" in service["command"][4].split(","), target
    assert service["environment"]["METRICS_LISTEN"].endswith(":7070"), target
    assert re.search(r"^http \{", open(service["command"][2]).read(), re.M), target
PY
}

@test "the old path's script: ids stay one word, and what Redis does not take is tried again" {
    run env REDIS_URL="unix://$BATS_TEST_TMPDIR/nobody" "$MR_ROOT/examples/term-analytics/publish_old.sh" <<<'{"args": {"terms": {"0x7": 1}}}'
    [ "$status" -eq 75 ]
    redis-server --port 0 --unixsocket "$BATS_TEST_TMPDIR/redis" --save '' 3>&- 7>&- >"$BATS_TEST_TMPDIR/redis.log" 2>&1 &
    redis=$!
    wait_until 20 redis-cli -s "$BATS_TEST_TMPDIR/redis" ping
    run env REDIS_URL="unix://$BATS_TEST_TMPDIR/redis" "$MR_ROOT/examples/term-analytics/publish_old.sh" <<<'{"args": {"terms": {"0x7": 1, "é \"x\"\r\nFLUSHALL": 2}}}'
    ids=$(redis-cli -s "$BATS_TEST_TMPDIR/redis" --json xrange term_updates - + | jq -c '[.[][1]]')
    kill $redis
    wait $redis || true
    echo "$status $output $ids"
    [ "$status" -eq 0 ]
    [ "$ids" = '[["term_id","0x7","event_ms","1"],["term_id","é \"x\"\r\nFLUSHALL","event_ms","2"]]' ]
}
