// SPDX-License-Identifier: PostgreSQL
//
// The private server's token of the HTTP API: made once, kept beside the server.

#include <stdio.h>
#include <string.h>

#include "daemon/private_server.h"
#include "daemon/private_server_parts.h"

#define TOKEN_FILE "token"
#define URL_FILE   "url"

// One that somebody has put there himself is as good, if it is one.
static bool take_token(const char *text, char ret_token[AUTH_TOKEN_MAX + 1])
{
    char header[AUTH_TOKEN_MAX + 16];

    snprintf(ret_token, AUTH_TOKEN_MAX + 1, "%s", text);
    ret_token[strcspn(ret_token, "\r\n")] = '\0';
    snprintf(header, sizeof(header), "Bearer %s", ret_token);
    return auth_bearer(header);
}

int private_server_token(const struct private_server *server, char ret_token[AUTH_TOKEN_MAX + 1],
                         char ret_hash[AUTH_HASH_SIZE], struct mr_error *err)
{
    bool there = false;
    AUTO_BUF text;

    buf_init(&text, SERVER_DIR_FILE_MAX);
    int code = server_dir_read(&server->dir, TOKEN_FILE, &text, &there, err);
    if (code) {
        return code;
    }
    if (there && take_token(buf_peek(&text), ret_token)) {
        auth_hash_token(ret_token, ret_hash);
        return 0;
    }
    code = auth_make_token(ret_token, ret_hash, err);
    buf_done(&text);
    buf_printf(&text, "%s\n", ret_token);
    return code ? code : server_dir_write(&server->dir, TOKEN_FILE, 0600, buf_peek(&text), err);
}

int private_server_publish_url(const struct private_server *server, const char *url,
                               struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, SERVER_DIR_FILE_MAX);
    if (!url) {
        server_dir_remove(&server->dir, URL_FILE);
        return 0;
    }
    buf_printf(&text, "%s\n", url);
    return server_dir_write(&server->dir, URL_FILE, 0600, buf_peek(&text), err);
}
