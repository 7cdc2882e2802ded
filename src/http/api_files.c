// SPDX-License-Identifier: PostgreSQL
//
// Files that are part of the program: the dashboard and the description of the API.

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "http/api.h"
#include "http/exchange.h"
#include "http/files.h"
#include "http/reply.h"

#define PAGE_POLICY                                                                  \
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; " \
    "form-action 'none'; frame-ancestors 'none'"

static const struct {
    const char *ending;
    const char *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
    {".svg", "image/svg+xml"},
    {".txt", "text/plain; charset=utf-8"},
    {".woff2", "font/woff2"},
};

static const char *type_of(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        size_t length = strlen(types[i].ending);
        if (strlen(name) > length && str_equal(name + strlen(name) - length, types[i].ending)) {
            return types[i].type;
        }
    }
    return "application/octet-stream";
}

static const struct embedded_file *find(const struct target *target)
{
    char name[256] = "index.html";
    size_t used = 0;

    for (size_t i = 0; i < target->part_count && used < sizeof(name); i++) {
        used += (size_t)snprintf(name + used, sizeof(name) - used, "%s%s", i ? "/" : "",
                                 target->parts[i]);
    }
    for (const struct embedded_file *file = embedded_files; file->name; file++) {
        if (str_equal(file->name, name)) {
            return file;
        }
    }
    return NULL;
}

void api_file(struct exchange *exchange)
{
    const struct embedded_file *file = find(&exchange->target);
    const char *known = exchange_header(exchange, "If-None-Match");

    if (!file) {
        exchange_refuse(exchange, 404, "there is no such file", NULL);
        return;
    }
    bool same = known && str_equal(known, file->tag);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        same ? 0 : file->size, (void *)file->data, MHD_RESPMEM_PERSISTENT);
    exchange->gone = !response;
    if (response) {
        reply_headers(response, type_of(file->name), PAGE_POLICY);
        MHD_add_response_header(response, "Cache-Control", "no-cache");
        MHD_add_response_header(response, "ETag", file->tag);
    }
    exchange_reply_with(exchange, same ? 304 : 200, response);
}
