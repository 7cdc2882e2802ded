// SPDX-License-Identifier: PostgreSQL
//
// Rows of a result as JSON: see rows.h.

#include "cli/rows.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "client/parcel.h"

// Types, as PostgreSQL numbers them.
enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_JSON = 114,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_NUMERIC = 1700,
    OID_JSONB = 3802,
};

const char *rows_value(const PGresult *rows, int row, int column)
{
    return PQgetisnull(rows, row, column) ? NULL : PQgetvalue(rows, row, column);
}

static void decode(PGresult *rows, int row, int column)
{
    AUTO_PARCEL parcel = {0};
    const char *args = rows_value(rows, row, column);

    if (args && part_args_are_coded(args) && parcel_open_args(&parcel, &args, NULL) == 0) {
        // without memory it stays as it is
        (void)PQsetvalue(rows, row, column, (char *)args, (int)strlen(args));
    }
}

void rows_decode(PGresult *rows)
{
    int column = PQfnumber(rows, "args");

    for (int i = 0; column >= 0 && i < PQntuples(rows); i++) {
        decode(rows, i, column);
    }
}

static void add_value(struct buf *out, Oid type, const char *value)
{
    switch (type) {
    case OID_BOOL: buf_puts(out, str_equal(value, "t") ? "true" : "false"); return;
    case OID_JSON:
    case OID_JSONB: buf_puts(out, value); return;
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_NUMERIC:
        // JSON has neither NaN nor Infinity
        buf_puts(out, isdigit((unsigned char)value[strspn(value, "-")]) ? value : "null");
        return;
    default: json_add_string(out, value);
    }
}

void rows_add_object(struct buf *out, const PGresult *rows, int row)
{
    for (int i = 0; i < PQnfields(rows); i++) {
        const char *value = rows_value(rows, row, i);

        buf_puts(out, i ? "," : "{");
        json_add_string(out, PQfname(rows, i));
        buf_puts(out, ":");
        if (value) {
            add_value(out, PQftype(rows, i), value);
        } else {
            buf_puts(out, "null");
        }
    }
    buf_puts(out, "}");
}

static int put_object(const PGresult *rows, int row, struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, ROWS_OBJECT_MAX);
    rows_add_object(&text, rows, row);
    int code = buf_status(&text, err);
    if (code == 0) {
        fwrite(text.data, 1, text.len, stdout);
    }
    return code;
}

int rows_print_object(const PGresult *rows, int row, struct mr_error *err)
{
    int code = put_object(rows, row, err);

    puts("");
    return code;
}

int rows_print_list(const char *name, const PGresult *rows, struct mr_error *err)
{
    int code = 0;

    printf("{\"%s\":[", name);
    for (int i = 0; i < PQntuples(rows) && code == 0; i++) {
        fputs(i ? ",\n" : "\n", stdout);
        code = put_object(rows, i, err);
    }
    puts("]}");
    return code;
}
