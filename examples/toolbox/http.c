// SPDX-License-Identifier: PostgreSQL
//
// As much of an HTTP server as the service needs, on libmicrohttpd: JSON in, JSON out, a free port
// of the loopback, one thread.

#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toolbox.h"

enum { BODY_MAX_BYTES = 16 * 1024 };

struct server {
    http_handler *handler;
    void *arg;
};

struct upload {
    size_t size;
    bool too_large;
    char body[BODY_MAX_BYTES + 1];
};

static enum MHD_Result answer(struct MHD_Connection *connection, struct http_reply *reply)
{
    char *text = json_dumps(reply->body, JSON_COMPACT | JSON_ENCODE_ANY);
    struct MHD_Response *response;
    enum MHD_Result result;

    json_decref(reply->body);
    if (text == NULL) {
        return MHD_NO;
    }
    response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    MHD_add_response_header(response, "Content-Type", "application/json");
    if (reply->cache != NULL) {
        MHD_add_response_header(response, "X-Cache", reply->cache);
    }
    if (reply->retry_after_s > 0) {
        char seconds[24];

        snprintf(seconds, sizeof(seconds), "%lld", (long long)reply->retry_after_s);
        MHD_add_response_header(response, "Retry-After", seconds);
    }
    result = MHD_queue_response(connection, reply->status, response);
    MHD_destroy_response(response);
    return result;
}

static void collect(struct upload *upload, const char *data, size_t size)
{
    if (size > BODY_MAX_BYTES - upload->size) {
        upload->too_large = true;
        return;
    }
    memcpy(upload->body + upload->size, data, size);
    upload->size += size;
}

// Called once for the headers, then for each part of the body, then with no data left.
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **state)
{
    struct server *server = arg;
    struct upload *upload = *state;
    struct http_reply reply = {.status = 200};

    (void)version;
    if (upload == NULL) {
        *state = calloc(1, sizeof(*upload));
        return *state != NULL ? MHD_YES : MHD_NO;
    }
    if (*size > 0) {
        collect(upload, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (upload->too_large) {
        http_refuse(&reply, 413, "a body has 16 KiB at most");
    } else {
        struct http_request request = {method, path, upload->body};

        server->handler(&request, &reply, server->arg);
    }
    return answer(connection, &reply);
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    (void)arg;
    (void)connection;
    (void)code;
    free(*state);
    *state = NULL;
}

int http_serve(const char *name, http_handler *handler, void *arg)
{
    struct server server = {handler, arg};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, &server,
                         MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
                         NULL, MHD_OPTION_CONNECTION_TIMEOUT, 30U, MHD_OPTION_END);
    const union MHD_DaemonInfo *port;

    if (daemon == NULL) {
        fprintf(stderr, "toolbox: %s: cannot listen on the loopback\n", name);
        return 1;
    }
    port = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    printf("%s listens on %d\n", name, port != NULL ? port->port : 0);
    signal_came(-1);
    MHD_stop_daemon(daemon);
    return 0;
}

void http_refuse(struct http_reply *reply, unsigned status, const char *message)
{
    reply->status = status;
    reply->body = json_pack("{s: s}", "error", message);
}

bool path_is(const char *path, const char *pattern, char names[2][NAME_MAX_BYTES + 1])
{
    int name = 0;

    while (*pattern != '\0') {
        size_t size = strcspn(path, "/");

        if (*pattern != '*') {
            if (*path++ != *pattern++) {
                return false;
            }
            continue;
        }
        if (size == 0 || size > NAME_MAX_BYTES || name == 2) {
            return false;
        }
        memcpy(names[name], path, size);
        names[name++][size] = '\0';
        path += size;
        pattern++;
    }
    return *path == '\0';
}
