// SPDX-License-Identifier: PostgreSQL
//
// `millrace token`: makes a token of the HTTP API, and the hash that the configuration has of it.

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/command.h"
#include "cli/options.h"
#include "http/auth.h"

static int print_help(const struct option_row *rows)
{
    puts(
        "usage: millrace token [--role ROLE] [--json]\n"
        "       millrace token --hash <FILE\n"
        "\n"
        "Makes a token of the HTTP API. The token itself is kept nowhere: give it to who needs it,\n"
        "and the hash to the daemon's configuration.\n");
    options_help(rows, stdout);
    puts("\nExit status: 0 done, 1 failed, 2 wrong usage. See millrace-token(1),\n"
         "millrace.conf(5).");
    return command_finish(EXIT_DONE);
}

static int check_usage(int argc, char **argv, int next, const char *role, struct mr_error *err)
{
    unsigned rights = 0;

    if (next < 0) {
        return next;
    }
    if (next < argc) {
        return mr_error_set(err, MR_EUSAGE, "token takes no argument: \"%s\"", argv[next]);
    }
    if (!auth_parse_role(role, &rights)) {
        mr_error_set(err, MR_EUSAGE, "wrong value for --role: \"%s\"", role);
        mr_error_hint(err, "Write reader, producer, worker or admin.");
        return MR_EUSAGE;
    }
    return 0;
}

// Of a token that is there already, on standard input: an argument could be seen by others.
static int print_hash(struct mr_error *err)
{
    char token[AUTH_TOKEN_MAX + 2] = "";
    char hash[AUTH_HASH_SIZE];

    if (!fgets(token, sizeof(token), stdin)) {
        return mr_error_set(err, MR_EUSAGE, "no token on standard input");
    }
    token[strcspn(token, "\r\n")] = '\0';
    char header[AUTH_TOKEN_MAX + 16];
    snprintf(header, sizeof(header), "Bearer %s", token);
    if (!auth_bearer(header)) {
        mr_error_set(err, MR_EUSAGE, "this is no token");
        mr_error_hint(err, "A token has 1 to %d visible characters.", AUTH_TOKEN_MAX);
        return MR_EUSAGE;
    }
    auth_hash_token(token, hash);
    puts(hash);
    return 0;
}

static int print_token(const char *role, bool json, struct mr_error *err)
{
    char token[AUTH_TOKEN_SIZE], hash[AUTH_HASH_SIZE];
    int code = auth_make_token(token, hash, err);

    if (code) {
        return code;
    }
    if (json) {
        printf("{\"token\":\"%s\",\"role\":\"%s\",\"hash\":\"%s\"}\n", token, role, hash);
    } else {
        printf("%s\n\ntoken NAME { role = \"%s\"  hash = \"%s\" }\n", token, role, hash);
    }
    return 0;
}

int cmd_token(int argc, char **argv)
{
    const char *role = "admin";
    bool hash = false;
    bool json = false;
    bool help = false;
    const struct option_row rows[] = {
        {"role", OPTION_STRING, &role, "ROLE", "reader, producer, worker or admin (admin)"},
        {"hash", OPTION_FLAG, &hash, NULL, "print the hash of the token on standard input"},
        {"json", OPTION_FLAG, &json, NULL, "print JSON"},
        {"help", OPTION_FLAG, &help, NULL, "show this"},
        {0},
    };
    struct mr_error err;
    int next = options_parse(rows, argc, argv, &err);

    if (next > 0 && help) {
        return print_help(rows);
    }
    int code = check_usage(argc, argv, next, role, &err);
    code = code ? code : hash ? print_hash(&err) : print_token(role, json, &err);
    return code ? command_fail(&err) : command_finish(EXIT_DONE);
}
