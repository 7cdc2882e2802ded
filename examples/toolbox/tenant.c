// SPDX-License-Identifier: PostgreSQL
//
// Tenants and faces in the cache. The configuration of a tenant is a file, which stands for the
// slow place where such things are kept.

#include <stdio.h>
#include <string.h>

#include "toolbox.h"

enum { REQUESTS_MAX = 1000000, PER_MAX_S = 31 * 24 * 60 * 60 };

void tenant_key(char key[KEY_SIZE], const char *name)
{
    snprintf(key, KEY_SIZE, "tenant:%s", name);
}

void face_key(char key[KEY_SIZE], const char *tenant, const char *face)
{
    snprintf(key, KEY_SIZE, "face:%s:%s", tenant, face);
}

static bool within(const json_t *config, const char *name, json_int_t most)
{
    const json_t *number = json_object_get(config, name);

    return json_integer_value(number) >= 1 && json_integer_value(number) <= most;
}

// Where no file can be read there is no such tenant, unless it is there and broken.
static enum tenant_found load(const char *directory, const char *name, json_t **ret, mr_error *err)
{
    char path[4096];
    json_error_t problem;
    json_t *config;

    snprintf(path, sizeof(path), "%s/%s.json", directory, name);
    config = json_load_file(path, 0, &problem);
    if (config == NULL && json_error_code(&problem) == json_error_cannot_open_file) {
        return TENANT_UNKNOWN;
    }
    if (within(config, "requests", REQUESTS_MAX) && within(config, "per_seconds", PER_MAX_S)) {
        *ret = config;
        return TENANT_LOADED;
    }
    *err = (mr_error){.code = MR_EIO};
    snprintf(err->message, sizeof(err->message), "tenant %s: %s", name,
             config == NULL ? problem.text : "requests or per_seconds is missing or out of range");
    json_decref(config);
    return TENANT_ERROR;
}

// A cache that fails is no reason not to answer.
static void remember(mr_conn *conn, const char *key, const json_t *config)
{
    char *text = json_dumps(config, JSON_COMPACT);
    mr_error err;

    if (text == NULL || mr_cache_set(conn, key, text, TENANT_TTL_MS, &err) != 0) {
        fprintf(stderr, "toolbox: %s is not cached\n", key);
    }
    free(text);
}

enum tenant_found tenant_config(mr_conn *conn, const char *directory, const char *name,
                                json_t **ret, mr_error *err)
{
    char key[KEY_SIZE];
    char *text = NULL;
    enum tenant_found found;

    if (!name_is_good(name)) {
        return TENANT_UNKNOWN;
    }
    tenant_key(key, name);
    if (mr_cache_get(conn, key, &text, err) != 0) {
        return TENANT_ERROR;
    }
    *ret = text != NULL ? json_loads(text, 0, NULL) : NULL;
    mr_free(text);
    if (*ret != NULL) {
        return TENANT_CACHED;
    }
    found = load(directory, name, ret, err);
    if (found == TENANT_LOADED) {
        remember(conn, key, *ret);
    }
    return found;
}

int face_note(mr_conn *conn, const char *tenant, const char *face, const char *standing,
              mr_error *err)
{
    char key[KEY_SIZE], value[KEY_SIZE * 2];

    face_key(key, tenant, face);
    snprintf(value, sizeof(value), "{\"tenant\": \"%s\", \"face\": \"%s\", \"standing\": \"%s\"}",
             tenant, face, standing);
    return mr_cache_set(conn, key, value, FACE_TTL_MS, err);
}
