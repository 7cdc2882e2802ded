// SPDX-License-Identifier: PostgreSQL
//
// What tenants talk to. Any number of these may run beside each other: configuration, limits and
// jobs are in the database.
//
//   GET    /tenants/T          the configuration; X-Cache says whether it came from the cache
//   DELETE /tenants/T          forget what is cached of it
//   POST   /tenants/T/faces    {"face": "f1", "document": "png"}: a job; 429: over the limit
//   GET    /tenants/T/faces/F  what is known about a face
//   GET    /jobs/N             the story of a job
//   GET    /stats              what came, what is cached, what waits, what is dead

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "toolbox.h"

enum { DEAD_MAX = 200 }; // what one call lists

typedef char path_names[2][NAME_MAX_BYTES + 1];

struct web {
    mr_conn *conn;
    const char *tenants; // directory
    json_int_t hits, misses, allowed, denied;
};

typedef void web_page(struct web *web, path_names names, const char *body,
                      struct http_reply *reply);

static void refuse_error(struct http_reply *reply, const mr_error *err)
{
    unsigned status = err->code == MR_EUSAGE ? 501 : 500; // 501: not on this backend

    http_refuse(reply, mr_code_class(err->code) == MR_CLASS_TRANSIENT ? 503 : status, err->message);
}

// The configuration of a tenant, counted as a hit or a miss; NULL where the reply says why not.
static json_t *config_of(struct web *web, const char *tenant, struct http_reply *reply)
{
    json_t *config = NULL;
    mr_error err;

    switch (tenant_config(web->conn, web->tenants, tenant, &config, &err)) {
    case TENANT_CACHED:
        web->hits++;
        reply->cache = "hit";
        break;
    case TENANT_LOADED:
        web->misses++;
        reply->cache = "miss";
        break;
    case TENANT_UNKNOWN: http_refuse(reply, 404, "no such tenant"); break;
    case TENANT_ERROR: refuse_error(reply, &err); break;
    }
    return config;
}

static void tenant_page(struct web *web, path_names names, const char *body,
                        struct http_reply *reply)
{
    json_t *config = config_of(web, names[0], reply);

    (void)body;
    if (config != NULL) {
        reply->body = config;
    }
}

static void tenant_forget(struct web *web, path_names names, const char *body,
                          struct http_reply *reply)
{
    char key[KEY_SIZE];
    int deleted;
    mr_error err;

    (void)body;
    tenant_key(key, names[0]);
    if (mr_cache_delete(web->conn, key, &deleted, &err) != 0) {
        refuse_error(reply, &err);
    } else {
        reply->body = json_pack("{s: b}", "deleted", deleted);
    }
}

// Whether the tenant may send one more. The window slides: `requests` in any `per_seconds`.
static bool within_limit(struct web *web, const char *tenant, const json_t *config,
                         struct http_reply *reply)
{
    char key[KEY_SIZE];
    int max = (int)json_integer_value(json_object_get(config, "requests"));
    int64_t per_ms = json_integer_value(json_object_get(config, "per_seconds")) * 1000;
    int allowed = 0;
    int64_t resets_at_us = 0;
    mr_error err;

    snprintf(key, sizeof(key), "requests:%s", tenant);
    if (mr_rate_limit(web->conn, key, max, per_ms, 1, &allowed, NULL, &resets_at_us, &err) != 0) {
        refuse_error(reply, &err);
    } else if (!allowed) {
        http_refuse(reply, 429, "too many requests");
        reply->retry_after_s = resets_at_us / 1000000 - time(NULL) + 1;
    }
    web->allowed += allowed;
    web->denied += reply->status == 429;
    return allowed;
}

static void enqueue_face(struct web *web, const char *tenant, const char *face,
                         const char *document, struct http_reply *reply)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    json_t *args =
        json_pack("{s: s, s: s, s: s}", "tenant", tenant, "face", face, "document", document);
    char *text = json_dumps(args, JSON_COMPACT);
    int64_t id = 0;
    mr_error err = {.message = "out of memory"};

    job.kind = "register";
    job.queue = REGISTER_QUEUE;
    job.args = text;
    if (text == NULL || mr_enqueue(web->conn, &job, &id, &err) != 0) {
        refuse_error(reply, &err);
    } else {
        reply->status = 202;
        reply->body = json_pack("{s: I}", "job", (json_int_t)id);
    }
    free(text);
    json_decref(args);
}

static void face_register(struct web *web, path_names names, const char *body,
                          struct http_reply *reply)
{
    json_t *asked = json_loads(body, 0, NULL);
    const char *face = json_string_value(json_object_get(asked, "face"));
    const char *document = json_string_value(json_object_get(asked, "document"));
    json_t *config = NULL;

    if (face == NULL || document == NULL || !name_is_good(face) || !name_is_good(document)) {
        http_refuse(reply, 400, "face and document must be names of at most 60 letters and digits");
    } else {
        config = config_of(web, names[0], reply);
    }
    if (config != NULL && within_limit(web, names[0], config, reply)) {
        enqueue_face(web, names[0], face, document, reply);
    }
    json_decref(config);
    json_decref(asked);
}

// A reply with a JSON text, which is freed.
static void reply_with(struct http_reply *reply, char *text)
{
    reply->body = text != NULL ? json_loads(text, 0, NULL) : NULL;
    if (reply->body == NULL) {
        http_refuse(reply, 404, "nothing is known about it");
    }
    mr_free(text);
}

static void face_page(struct web *web, path_names names, const char *body, struct http_reply *reply)
{
    char key[KEY_SIZE];
    char *text = NULL;
    mr_error err;

    (void)body;
    face_key(key, names[0], names[1]);
    if (mr_cache_get(web->conn, key, &text, &err) != 0) {
        refuse_error(reply, &err);
    } else {
        reply_with(reply, text);
    }
}

static void job_page(struct web *web, path_names names, const char *body, struct http_reply *reply)
{
    char *text = NULL;
    int code;
    mr_error err;

    (void)body;
    code = mr_job(web->conn, strtoll(names[0], NULL, 10), &text, &err);
    if (code != 0 && code != MR_EUNKNOWN) {
        refuse_error(reply, &err);
    } else {
        reply_with(reply, text);
    }
}

// How many dead letters a queue has, DEAD_MAX at most. Where nothing was enqueued yet there is no
// queue, and none.
static int dead_count(struct web *web, const char *queue, json_int_t *ret, mr_error *err)
{
    char *text = NULL;
    json_t *page;
    int code = mr_list_dead(web->conn, queue, NULL, DEAD_MAX, &text, err);

    if (code != 0 && code != MR_EUNKNOWN) {
        return code;
    }
    page = text != NULL ? json_loads(text, 0, NULL) : NULL;
    *ret = (json_int_t)json_array_size(json_object_get(page, "jobs"));
    json_decref(page);
    mr_free(text);
    return 0;
}

static void stats_page(struct web *web, path_names names, const char *body,
                       struct http_reply *reply)
{
    int64_t total = 0, valid = 0, expired = 0, registering = 0, verifying = 0;
    json_int_t unregistered = 0, unverified = 0;
    mr_error err;

    (void)names;
    (void)body;
    if (mr_cache_stats(web->conn, &total, &valid, &expired, NULL, &err) != 0 ||
        mr_depth(web->conn, REGISTER_QUEUE, &registering, &err) != 0 ||
        mr_depth(web->conn, VERIFY_QUEUE, &verifying, &err) != 0 ||
        dead_count(web, REGISTER_QUEUE, &unregistered, &err) != 0 ||
        dead_count(web, VERIFY_QUEUE, &unverified, &err) != 0) {
        refuse_error(reply, &err);
        return;
    }
    reply->body =
        json_pack("{s: I, s: I, s: I, s: I, s: {s: I, s: I, s: I}, s: I, s: I, s: I}", "hits",
                  web->hits, "misses", web->misses, "allowed", web->allowed, "denied", web->denied,
                  "cache", "total", (json_int_t)total, "valid", (json_int_t)valid, "expired",
                  (json_int_t)expired, "registering", (json_int_t)registering, "verifying",
                  (json_int_t)verifying, "dead", unregistered + unverified);
}

static const struct route {
    const char *method;
    const char *path;
    web_page *page;
} routes[] = {
    {"GET", "/tenants/*", tenant_page},
    {"DELETE", "/tenants/*", tenant_forget},
    {"POST", "/tenants/*/faces", face_register},
    {"GET", "/tenants/*/faces/*", face_page},
    {"GET", "/jobs/*", job_page},
    {"GET", "/stats", stats_page},
};

static void handle(const struct http_request *request, struct http_reply *reply, void *arg)
{
    path_names names = {"", ""};

    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (strcmp(request->method, routes[i].method) == 0 &&
            path_is(request->path, routes[i].path, names)) {
            routes[i].page(arg, names, request->body, reply);
            return;
        }
    }
    http_refuse(reply, 404, "no such page");
}

int command_web(int argc, char **argv)
{
    struct web web = {.tenants = argv[0]};
    int status;

    (void)argc;
    if (db_open(&web.conn) != 0) {
        return 1;
    }
    status = http_serve("web", handle, &web);
    mr_conn_free(web.conn);
    return status;
}
