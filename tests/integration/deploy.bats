#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# What is in deploy/: the unit, the container, the alerts and the dashboard, as far as they can be
# checked where neither systemd nor a container runs.

bats_require_minimum_version 1.5.0
load ../lib/server

setup()
{
    cd "$MR_ROOT/deploy" || return
}

need()
{
    command -v "$1" >/dev/null || skip "$1 is not installed: $2"
}

alerts()
{
    sed -n 's/^ *- alert: //p' prometheus/rules.yml
}

# The expressions of the dashboard, with its variables filled in.
expressions()
{
    jq -r '.panels[].targets[]?.expr' grafana/millrace.json |
        sed -e 's/\$__rate_interval/5m/g' -e 's/\$queue/.*/g'
}

# One rule, for everything; docs/s3.md says what its days have to be more than.
@test "the rule for a bucket is one that S3 takes" {
    run -0 jq -r '.Rules[] | [.Status, .Filter.Prefix, .Expiration.Days, (.ID | length <= 255)] | @csv' s3-lifecycle.json
    [ "$output" = '"Enabled","",7,true' ]
    run -0 jq -r 'keys[], (.Rules[] | keys[])' s3-lifecycle.json
    [ "$(echo "$output" | tr '\n' ' ')" = 'Rules Expiration Filter ID Status ' ]
}

@test "the alerts are right, and each fires in its test" {
    local alert
    need promtool 'tools/deps test'
    promtool check rules prometheus/rules.yml
    run promtool test rules prometheus/rules_test.yml
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(alerts | wc -l)" -ge 11 ]
    while read -r alert; do
        # with at least one expected alert, and a time at which there is none
        grep -A3 "alertname: $alert\$" prometheus/rules_test.yml | grep -q exp_labels || { echo "$alert is not seen to fire"; return 1; }
        grep -q "alertname: $alert, exp_alerts: \[\]" prometheus/rules_test.yml || { echo "$alert is not seen to be silent"; return 1; }
    done < <(alerts)
    promtool check config --syntax-only prometheus/prometheus.yml
}

@test "every alert has a page of what to do" {
    local anchor
    while read -r anchor; do
        sed -n 's/^##* //p' "$MR_ROOT/docs/operations.md" | tr '[:upper:]' '[:lower:]' | tr ' ' - | grep -qx "$anchor" || { echo "no $anchor"; return 1; }
    done < <(sed -n 's/.*runbook: docs\/operations.md#//p' prometheus/rules.yml)
    while read -r anchor; do
        grep -q "\`$anchor\`" "$MR_ROOT/docs/operations.md" || { echo "$anchor is not named"; return 1; }
    done < <(alerts)
}

@test "the dashboard: valid, and every expression is one" {
    local i=0 expression
    need promtool 'tools/deps test'
    [ "$(jq -r '[.panels[].id] | length == (unique | length)' grafana/millrace.json)" = true ]
    [ "$(jq -r '[.panels[] | select(.type != "row") | select((.targets | length) == 0 or .title == "")] | length' grafana/millrace.json)" = 0 ]
    {
        printf 'groups:\n  - name: dashboard\n    rules:\n'
        while read -r expression; do
            printf '      - {record: "panel:%d", expr: %s}\n' $((++i)) "$(jq -Rn --arg e "$expression" '$e')"
        done < <(expressions)
    } >"$BATS_TEST_TMPDIR/panels.yml"
    [ "$(grep -c record: "$BATS_TEST_TMPDIR/panels.yml")" -gt 25 ]
    promtool check rules "$BATS_TEST_TMPDIR/panels.yml"
}

@test "alerts and dashboard use metrics that docs/operations.md has, and no others" {
    { expressions; grep -v '^#' prometheus/rules.yml; jq -r '.templating.list[].query | tostring' grafana/millrace.json; } |
        grep -oE '\bmillrace_[a-z_]+' | sed 's/_bucket$//' | sort -u >"$BATS_TEST_TMPDIR/used"
    awk '/^## Metrics/ { on = 1; next } /^## / { on = 0 } on' "$MR_ROOT/docs/operations.md" |
        grep -oE '`millrace_[a-z_]+' | tr -d '`' | sort -u >"$BATS_TEST_TMPDIR/known"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/used")" -gt 15 ]
    [ -z "$(comm -23 "$BATS_TEST_TMPDIR/used" "$BATS_TEST_TMPDIR/known")" ] || { comm -23 "$BATS_TEST_TMPDIR/used" "$BATS_TEST_TMPDIR/known"; return 1; }
}

@test "the unit is right, and keeps the service in bounds" {
    need systemd-analyze 'apt install systemd'
    cp millrace.service "$BATS_TEST_TMPDIR/"
    run systemd-analyze verify --man=no "$BATS_TEST_TMPDIR/millrace.service"
    echo "$output"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    run systemd-analyze security --offline=true --threshold=20 "$BATS_TEST_TMPDIR/millrace.service"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "the container has the libraries that the program is linked with" {
    local library package
    need dpkg 'a package is made on Debian and its kin'
    [ -z "${SANITIZE:-}" ] || skip 'a sanitizer needs libraries of its own: run it without SANITIZE'
    sed -n '/^FROM debian:12-slim$/,$p' Dockerfile | sed -n 's/.*apt-get install -y --no-install-recommends \(.*\) \\$/\1/p' |
        tr ' ' '\n' | grep -vx ca-certificates | sort >"$BATS_TEST_TMPDIR/installed"
    while read -r library; do
        package=$(dpkg -S "*/$library" | head -n 1)
        printf '%s\n' "${package%%:*}"
    done < <(readelf -d "$MR_BIN" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|ld-linux.*)\.so') | sort -u >"$BATS_TEST_TMPDIR/needed"
    diff -u "$BATS_TEST_TMPDIR/needed" "$BATS_TEST_TMPDIR/installed"
}

@test "the compose file: what it depends on and mounts is there" {
    python3 -c 'import yaml' 2>/dev/null || skip 'python3-yaml is not installed: tools/deps test'
    python3 - <<'PY'
import os
import yaml

services = yaml.safe_load(open("compose.yml"))["services"]
# what the one who starts it brings along
own = {"./millrace.conf"}
for name, service in services.items():
    for other in service.get("depends_on", {}):
        assert other in services, f"{name} depends on {other}"
    assert "image" in service, name
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        if source.startswith("./") and source not in own:
            assert os.path.exists(source), source
for name in ("grafana/datasource.yml", "grafana/dashboards.yml", "prometheus/prometheus.yml"):
    assert yaml.safe_load(open(name)), name
PY
}
