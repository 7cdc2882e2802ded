// SPDX-License-Identifier: PostgreSQL
//
// Connection strings that name several databases: see dsn_list.h.

#include "client/dsn_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/redis_url.h"

static bool is_blank(char c)
{
    return isspace((unsigned char)c);
}

// In a URI quotes are characters like others.
static bool is_uri(const char *dsn)
{
    while (is_blank(*dsn)) {
        dsn++;
    }
    return str_starts(dsn, "postgresql://") || str_starts(dsn, "postgres://");
}

// The semicolon that ends the first address, NULL where it is the last.
static const char *first_end(const char *dsn)
{
    bool quotes = !is_uri(dsn), quoted = false;

    for (const char *c = dsn; *c; c++) {
        if (quotes && quoted && *c == '\\' && c[1]) {
            c++;
        } else if (quotes && *c == '\'') {
            quoted = !quoted;
        } else if (!quoted && *c == ';' && (c == dsn || is_blank(c[-1])) &&
                   (!c[1] || is_blank(c[1]))) {
            return c;
        }
    }
    return NULL;
}

bool dsn_is_list(const char *dsn)
{
    return dsn && first_end(dsn);
}

static int wrong(struct mr_error *err, const char *what)
{
    mr_error_set(err, MR_EUSAGE, "cannot connect: %s", what);
    mr_error_hint(err,
                  "Write the addresses of the shards with \" ; \" between them, at most %d; see "
                  "docs/shards.md.",
                  DSN_LIST_MAX);
    return MR_EUSAGE;
}

static int add_item(struct dsn_list *list, const char *from, size_t len, struct mr_error *err)
{
    while (len > 0 && is_blank(*from)) {
        from++;
        len--;
    }
    while (len > 0 && is_blank(from[len - 1])) {
        len--;
    }
    if (len == 0) {
        return wrong(err, "an address of the list is empty");
    }
    if (list->count == DSN_LIST_MAX) {
        return wrong(err, "the list has too many addresses");
    }
    char *item = strndup(from, len);
    if (!item) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    list->items[list->count++] = item;
    for (int i = 0; i + 1 < list->count; i++) {
        if (str_equal(list->items[i], item)) {
            return wrong(err, "the list has an address twice");
        }
    }
    return redis_url_is(item)
               ? wrong(err, "the list has an address of Redis; shards are PostgreSQL")
               : 0;
}

static int parse(const char *dsn, struct dsn_list *list, struct mr_error *err)
{
    int code = 0;

    for (const char *end; code == 0 && (end = first_end(dsn)); dsn = end + 1) {
        code = add_item(list, dsn, (size_t)(end - dsn), err);
    }
    return code ? code : add_item(list, dsn, strlen(dsn), err);
}

// NULL stays NULL: libpq's environment.
static int take_one(const char *dsn, struct dsn_list *list, struct mr_error *err)
{
    list->count = 1;
    if (dsn && !(list->items[0] = strdup(dsn))) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    return 0;
}

int dsn_list_parse(const char *dsn, struct dsn_list *ret, struct mr_error *err)
{
    struct dsn_list list = {0};
    int code = (dsn_is_list(dsn) ? parse : take_one)(dsn, &list, err);

    if (code) {
        dsn_list_done(&list);
        return code;
    }
    *ret = list;
    return 0;
}

void dsn_list_done(struct dsn_list *list)
{
    for (int i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    *list = (struct dsn_list){0};
}

void dsn_list_add(struct buf *out, const char *dsn)
{
    buf_puts(out, out->len ? " ; " : "");
    buf_puts(out, dsn);
}
