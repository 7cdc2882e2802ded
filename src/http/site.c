// SPDX-License-Identifier: PostgreSQL
//
// A database that HTTP serves: see site.h.

#include "http/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "client/conn.h"
#include "client/dsn_list.h"
#include "client/shard.h"
#include "client/shards.h"
#include "http/enqueue_group.h"
#include "http/http_parts.h"
#include "http/wakeup.h"

#define CONNECTIONS 4
#define LOOK_TICKS  (SHARD_LOOK_MS / 1000)

bool sites_several(const struct http *http)
{
    return http->site_count > 1;
}

int site_number(const struct site *site)
{
    const struct shard_set *set = &site->http->set;

    return set->entries[site->at].known ? set->entries[site->at].info.number : -1;
}

// ---- which shard it is ----

static void name_it(struct site *site)
{
    int number = site_number(site);

    snprintf(site->name, sizeof(site->name), number < 0 ? "address %d" : "%d",
             number < 0 ? site->at + 1 : number);
}

static void tell_refused(const struct site *site)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("shard", site->name),
        LOG_TEXT_FIELD("detail", site->why.detail[0] ? site->why.detail : NULL),
        LOG_TEXT_FIELD("hint", site->why.hint[0] ? site->why.hint : NULL),
    };

    log_put(LEVEL_ERROR, "http.shard_refused", fields, 3, "a shard cannot be used: %s",
            site->why.message);
}

static void admit(struct site *site, PGresult *result)
{
    struct http *http = site->http;
    struct mr_error why = {0};
    struct shard_info info;
    bool refused = site->why.code;

    int code = shard_info_read(result, &info, &why);
    code = code ? code : shard_set_admit(&http->set, site->at, &info, &why);
    site->why = why;
    site->sure = code == 0;
    site->sure_of = database_reconnects(site->db);
    name_it(site);
    if (code && !refused) {
        tell_refused(site);
    }
}

static void told(void *arg, PGresult *result, const struct mr_error *err)
{
    struct site *site = arg;
    bool before = site->sure;

    site->asking = false;
    if (!err) {
        admit(site, result);
    }
    if (site->sure && !before) {
        site->http->hooks.connected(site->http->hooks.arg);
    }
}

static void ask(struct site *site)
{
    AUTO_CALL call;

    call_init(&call, CALL_SHARD);
    if (!site->asking && database_connected(site->db)) {
        site->asking = database_call(site->db, DATABASE_COMMON, &call, told, site, NULL) == 0;
    }
}

static void on_connected(void *arg)
{
    struct site *site = arg;

    if (sites_several(site->http)) {
        site->sure = false;
        ask(site);
    } else {
        site->http->hooks.connected(site->http->hooks.arg);
    }
}

void sites_look(struct http *http)
{
    for (int i = 0; sites_several(http) && !http->stopping && i < http->site_count; i++) {
        struct site *site = &http->sites[i];
        site->sure = site->sure && site->sure_of == database_reconnects(site->db);
        if (!site->sure || http->ticks % LOOK_TICKS == 0) {
            ask(site);
        }
    }
    http->ticks++;
}

// ---- whether it can be used ----

int site_check(const struct site *site, struct mr_error *err)
{
    bool sure = site->sure && site->sure_of == database_reconnects(site->db);

    if (!sites_several(site->http) || (sure && database_connected(site->db))) {
        return 0;
    }
    if (site->why.code) { // for a client that is as good as down
        mr_error_set(err, MR_ECONNECT, "address %d: %s", site->at + 1, site->why.message);
        mr_error_hint(err, "%s", site->why.hint);
        return MR_ECONNECT;
    }
    int number = site_number(site);
    mr_error_set(err, MR_ECONNECT, "%s %d cannot be reached", number < 0 ? "address" : "shard",
                 number < 0 ? site->at + 1 : number);
    mr_error_hint(err, "Nothing was done there. Try again.");
    return MR_ECONNECT;
}

int site_check_open(const struct site *site, struct mr_error *err)
{
    const struct shard_info *info = &site->http->set.entries[site->at].info;
    int code = site_check(site, err);

    if (code) {
        return code;
    }
    if (info->read_only || info->status == SHARD_DRAINING) {
        mr_error_set(err, MR_EREADONLY, "shard %d %s: it takes no new jobs", info->number,
                     info->read_only ? "is read-only" : "is draining");
        mr_error_sqlstate(err, "25006");
        return MR_EREADONLY;
    }
    return 0;
}

bool sites_connected(const struct http *http)
{
    for (int i = 0; sites_several(http) && i < http->site_count; i++) {
        struct mr_error err;
        if (site_check(&http->sites[i], &err) == 0) {
            return true;
        }
    }
    return !sites_several(http) && database_connected(http->sites[0].db);
}

int64_t sites_reconnects(const struct http *http)
{
    int64_t all = 0;

    for (int i = 0; i < http->site_count; i++) {
        all += database_reconnects(http->sites[i].db) + wakeup_reconnects(http->sites[i].wakeup);
    }
    return all;
}

int sites_find(struct http *http, int number, struct site **ret, struct mr_error *err)
{
    int at = shard_set_find(&http->set, number);

    if (at >= 0) {
        *ret = &http->sites[at];
        return 0;
    }
    for (int i = 0; i < http->site_count; i++) {
        if (site_number(&http->sites[i]) < 0) {
            site_check(&http->sites[i], err);
            mr_error_prefix(err, "shard %d is not known", number);
            return err->code;
        }
    }
    mr_error_set(err, MR_EUNKNOWN, "there is no shard %d", number);
    mr_error_sqlstate(err, "MR003");
    mr_error_hint(err, "`millrace shard list` shows which there are.");
    return MR_EUNKNOWN;
}

int sites_first(struct http *http, struct site **ret, struct mr_error *err)
{
    uint32_t members = shard_set_members(&http->set);

    if (!members) {
        return site_check(&http->sites[0], err);
    }
    return sites_find(http, __builtin_ctz(members), ret, err);
}

// ---- what is told of them ----

void site_describe(const struct site *site, const struct mr_error *err, struct buf *out)
{
    const struct shard_info *info = &site->http->set.entries[site->at].info;
    struct mr_error why;
    bool down = site_check(site, &why) != 0;

    buf_puts(out, "{\"shard\":");
    if (site_number(site) < 0) {
        buf_puts(out, "null");
    } else {
        buf_printf(out, "%d", site_number(site));
    }
    buf_printf(out, ",\"address\":%d,\"status\":\"%s\"", site->at + 1,
               down ? "down" : shard_status_name(info->status));
    if (err || down) {
        buf_puts(out, ",\"error\":");
        json_add_string(out, err ? err->message : why.message);
    }
    buf_puts(out, "}");
}

void sites_describe(const struct http *http, struct buf *out)
{
    for (int i = 0; i < http->site_count; i++) {
        buf_puts(out, i ? "," : "[");
        site_describe(&http->sites[i], NULL, out);
    }
    buf_puts(out, "]");
}

// ---- beginning and end ----

static int open_one(struct site *site, const char *dsn, struct mr_error *err)
{
    struct http *http = site->http;

    if (dsn && !(site->dsn = strdup(dsn))) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    const struct database_options options = {
        .dsn = site->dsn,
        .pooler = http->options.pooler,
        .name = sites_several(http) ? site->name : NULL,
        .connections = CONNECTIONS,
        .connected = on_connected,
        .arg = site,
    };
    name_it(site);
    uv_timer_init(http->loop, &site->linger);
    site->linger.data = site;
    site->ticks = true;
    site->group = enqueue_group_new(site);
    site->wakeup = wakeup_new(site->dsn, http->options.pooler, http->loop);
    if (!site->group || !site->wakeup) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    return database_new(&options, http->loop, &site->db, err);
}

int sites_open(struct http *http, struct mr_error *err)
{
    const char *several = conn_shards_dsn(http->options.dsn);
    struct dsn_list list;
    int code = dsn_list_parse(several ? several : http->options.dsn, &list, err);

    if (code) {
        return code;
    }
    http->sites = calloc((size_t)list.count, sizeof(*http->sites));
    http->site_count = http->sites ? list.count : 0;
    http->set.count = http->site_count;
    code = http->sites ? 0 : mr_error_set(err, MR_ENOMEM, "out of memory");
    for (int i = 0; i < http->site_count; i++) {
        http->sites[i].http = http;
        http->sites[i].at = i;
    }
    for (int i = 0; code == 0 && i < http->site_count; i++) {
        code = open_one(&http->sites[i], list.items[i], err);
    }
    dsn_list_done(&list);
    return code;
}

void sites_abandon(struct http *http)
{
    for (int i = 0; i < http->site_count; i++) {
        database_abandon(http->sites[i].db);
    }
}

static void on_part_closed(void *arg);

// Answers of a database may still use wake-ups: these are closed after all of them.
static void close_wakeups(struct http *http)
{
    http->closing_wakeups = true;
    http->open_parts = 1;
    for (int i = 0; i < http->site_count; i++) {
        if (http->sites[i].wakeup) {
            http->open_parts++;
            wakeup_close(http->sites[i].wakeup, on_part_closed, http);
        }
    }
    on_part_closed(http);
}

static void on_part_closed(void *arg)
{
    struct http *http = arg;

    if (--http->open_parts > 0) {
        return;
    }
    if (http->closing_wakeups) {
        http->sites_closed(http->sites_closed_arg);
    } else {
        close_wakeups(http);
    }
}

static void on_linger_closed(uv_handle_t *handle)
{
    const struct site *site = handle->data;

    on_part_closed(site->http);
}

void sites_close(struct http *http, void (*closed)(void *arg), void *arg)
{
    http->sites_closed = closed;
    http->sites_closed_arg = arg;
    http->open_parts = 1;
    for (int i = 0; i < http->site_count; i++) {
        struct site *site = &http->sites[i];
        if (site->ticks) {
            http->open_parts++;
            uv_close((uv_handle_t *)&site->linger, on_linger_closed);
        }
        if (site->db) {
            http->open_parts++;
            database_close(site->db, on_part_closed, http);
        }
    }
    on_part_closed(http);
}

void sites_free(struct http *http)
{
    for (int i = 0; i < http->site_count; i++) {
        enqueue_group_free(http->sites[i].group);
        policies_done(&http->sites[i].policies);
        free(http->sites[i].dsn);
    }
    free(http->sites);
}
