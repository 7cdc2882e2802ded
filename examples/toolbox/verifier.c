// SPDX-License-Identifier: PostgreSQL
//
// The endpoint that verifies documents. It can be told to fail, and to learn a format:
//
//   POST /verify   {"face": "f1", "document": "png"}     200, or 422 for a format it cannot read
//   POST /control  {"failing": 6}                        the next six calls are answered with 503
//   POST /control  {"reads_webp": true}
//   GET  /stats

#include <string.h>

#include "toolbox.h"

struct verifier {
    json_int_t failing;
    bool reads_webp;
    json_int_t verified, failed, unreadable;
};

static void verify(struct verifier *verifier, const json_t *body, struct http_reply *reply)
{
    const char *document = json_string_value(json_object_get(body, "document"));

    if (verifier->failing > 0) {
        verifier->failing--;
        verifier->failed++;
        http_refuse(reply, 503, "out of order");
    } else if (document == NULL || (strcmp(document, "webp") == 0 && !verifier->reads_webp)) {
        verifier->unreadable++;
        http_refuse(reply, 422, "cannot read the document");
    } else {
        verifier->verified++;
        reply->body = json_pack("{s: b}", "verified", 1);
    }
}

static void control(struct verifier *verifier, const json_t *body, struct http_reply *reply)
{
    const json_t *failing = json_object_get(body, "failing");
    const json_t *reads_webp = json_object_get(body, "reads_webp");

    if (failing != NULL) {
        verifier->failing = json_integer_value(failing);
    }
    if (reads_webp != NULL) {
        verifier->reads_webp = json_is_true(reads_webp);
    }
    reply->body = json_object();
}

static void handle(const struct http_request *request, struct http_reply *reply, void *arg)
{
    struct verifier *verifier = arg;
    json_t *body = json_loads(request->body, 0, NULL);

    if (strcmp(request->path, "/stats") == 0) {
        reply->body = json_pack("{s: I, s: I, s: I}", "verified", verifier->verified, "failed",
                                verifier->failed, "unreadable", verifier->unreadable);
    } else if (!json_is_object(body)) {
        http_refuse(reply, 400, "the body must be a JSON object");
    } else if (strcmp(request->path, "/verify") == 0) {
        verify(verifier, body, reply);
    } else if (strcmp(request->path, "/control") == 0) {
        control(verifier, body, reply);
    } else {
        http_refuse(reply, 404, "no such page");
    }
    json_decref(body);
}

int command_verifier(int argc, char **argv)
{
    struct verifier verifier = {0};

    (void)argc;
    (void)argv;
    return http_serve("verifier", handle, &verifier);
}
