// SPDX-License-Identifier: PostgreSQL
//
// GET /api/v1/system: what the server says of itself, and of its disk what this host can see; of
// several shards each.

#include <jansson.h>
#include <stdlib.h>

#include "http/across.h"
#include "http/api.h"
#include "http/disk.h"
#include "http/exchange.h"
#include "http/params.h"

// What is said of the disk: an empty object when it is not known.
static json_t *disk_face(const struct site *site, const json_t *system)
{
    const json_t *data = json_object_get(json_object_get(system, "disk"), "data_directory");
    struct disk disk;

    if (!disk_look(site, json_string_value(data), &disk)) {
        return json_object();
    }
    return json_pack("{s:s, s:I, s:I, s:f}", "path", disk.path, "bytes", (json_int_t)disk.bytes,
                     "free_bytes", (json_int_t)disk.free_bytes, "free_ratio", disk.free_ratio);
}

static void shape(const struct site *site, struct json_slice from, struct buf *out)
{
    json_t *system = json_loadb(from.at, from.len, 0, NULL);

    json_object_set_new(system, "disk", disk_face(site, system));
    char *text = json_dumps(system, JSON_COMPACT | JSON_REAL_PRECISION(15));
    if (text) {
        buf_puts(out, text);
    } else {
        buf_add(out, from.at, from.len);
    }
    free(text);
    json_decref(system);
}

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct exchange *exchange = arg;
    AUTO_BUF body;

    buf_init(&body, CALL_SIZE_MAX);
    if (err) {
        exchange_fail(exchange, err);
        return;
    }
    shape(exchange->site,
          (struct json_slice){PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0)}, &body);
    exchange_reply(exchange, 200, &body);
}

void api_system(struct exchange *exchange)
{
    struct params params;
    AUTO_CALL call;

    call_init(&call, exchange->route->call);
    if (!api_params(exchange, &params)) {
        return;
    }
    if (!exchange->site) {
        across_call(exchange, &params, ROUTE_PARAMS_MAX, shape);
    } else {
        exchange_call(exchange, DATABASE_COMMON, &call, answered);
    }
}
