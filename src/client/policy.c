// SPDX-License-Identifier: PostgreSQL
//
// Policies of payloads: see policy.h.

#include "client/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/str.h"

// The bits of a lane below its queue.
#define LANE_QUEUE_SHIFT 12

// 0 for null and anything that is no number of bytes.
static size_t read_bytes(struct json_slice value)
{
    char digits[24];
    int64_t number = 0;

    if (value.len < sizeof(digits)) {
        memcpy(digits, value.at, value.len);
        digits[value.len] = '\0';
        str_parse_int(digits, 0, INT32_MAX, &number);
    }
    return (size_t)number;
}

// "" for what is none.
static void read_home(struct json_slice value, char ret[POLICY_HOME_SIZE])
{
    ret[0] = '\0';
    if (value.len > 2 && value.at[0] == '"' && value.len - 2 < POLICY_HOME_SIZE &&
        !memchr(value.at, '\\', value.len)) {
        memcpy(ret, value.at + 1, value.len - 2);
        ret[value.len - 2] = '\0';
    }
}

static void on_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct policy *policy = arg;

    if (json_slice_is(key, "compress")) {
        policy->compress_above = read_bytes(value);
    } else if (json_slice_is(key, "max_args")) {
        policy->args_max = read_bytes(value);
    } else if (json_slice_is(key, "offload")) {
        policy->offload_above = read_bytes(value);
    } else if (json_slice_is(key, "blobs")) {
        read_home(value, policy->home);
    } else if (json_slice_is(key, "pieces")) {
        policy->pieces = json_slice_is(value, "true");
    }
}

int policy_read(const char *json, struct policy *ret, struct mr_error *err)
{
    struct policy policy = {0};

    if (json_each_member(json_slice_of(json), on_member, &policy, NULL)) {
        mr_error_set(err, MR_ESCHEMA, "payload_policy() returns no policy");
        mr_error_hint(err, "The schema and the library are of different versions; upgrade the "
                           "older one (`millrace migrate` for the schema).");
        return MR_ESCHEMA;
    }
    *ret = policy;
    return 0;
}

// ---- what is known ----

void policies_done(struct policies *policies)
{
    for (size_t i = 0; i < POLICIES_MAX; i++) {
        free(policies->known[i].name);
    }
    *policies = (struct policies){0};
}

const struct policy *policies_find(const struct policies *policies, const char *name,
                                   int64_t now_ms)
{
    for (size_t i = 0; i < POLICIES_MAX && policies->known[i].name; i++) {
        const struct known_policy *known = &policies->known[i];
        if (str_equal(known->name, name)) {
            return now_ms < known->until_ms ? &known->policy : NULL;
        }
    }
    return NULL;
}

// The place of the name, a free one, or the one whose turn it is.
static struct known_policy *place_of(struct policies *policies, const char *name)
{
    for (size_t i = 0; i < POLICIES_MAX; i++) {
        struct known_policy *known = &policies->known[i];
        if (!known->name || str_equal(known->name, name)) {
            return known;
        }
    }
    policies->next = (policies->next + 1) % POLICIES_MAX;
    return &policies->known[policies->next];
}

void policies_put(struct policies *policies, const char *name, const struct policy *policy,
                  int64_t now_ms)
{
    struct known_policy *known = place_of(policies, name);

    if (!known->name || !str_equal(known->name, name)) {
        char *copy = strdup(name);
        if (!copy) {
            return;
        }
        free(known->name);
        known->name = copy;
    }
    known->policy = *policy;
    known->until_ms = now_ms + POLICY_MS;
}

void policies_forget(struct policies *policies, const char *name)
{
    for (size_t i = 0; i < POLICIES_MAX && policies->known[i].name; i++) {
        if (str_equal(policies->known[i].name, name)) {
            policies->known[i].until_ms = INT64_MIN;
        }
    }
}

// A lease is slot.lane.number.token. No queue has a name that begins with a control character and
// is a number: where one has, the worst is its policy for the other's parts, which is harmless.
void policy_lease_name(const char *lease, char ret[POLICY_LEASE_NAME_SIZE])
{
    const char *lane = strchr(lease, '.');
    long number = lane ? strtol(lane + 1, NULL, 10) : 0;

    snprintf(ret, POLICY_LEASE_NAME_SIZE, "\1%ld", number >> LANE_QUEUE_SHIFT);
}
