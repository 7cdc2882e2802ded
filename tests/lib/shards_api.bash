# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# The HTTP API on several shards, after lib/shards and lib/api:
#
#   shards_are STATUSES   what /readyz says of the shards, in the order of the addresses: '["active","down","active"]'
#   shard_of ID           the shard of an id
#   tenant_of SHARD       a tenant whose jobs belong to a shard

# shellcheck disable=SC2154 # body is set in lib/api
shards_are()
{
    api GET /readyz
    [ "$(jq -c '[.shards[].status]' <<<"$body")" = "$1" ]
}

shard_of()
{
    echo $(($1 >> 48))
}

tenant_of()
{
    local i
    for ((i = 0; i < 100; i++)); do
        post /api/v1/jobs "{\"kind\": \"probe\", \"queue\": \"probes\", \"tenant\": \"t$i\"}"
        if [ "$(shard_of "$(jq .id <<<"$body")")" -eq "$1" ]; then
            echo "t$i"
            return
        fi
    done
    return 1
}
