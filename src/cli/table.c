// SPDX-License-Identifier: PostgreSQL
//
// Aligned tables for people: see table.h.

#include "cli/table.h"

#include <string.h>

enum { COLUMNS_MAX = 16, GAP = 2 };

void table_init(struct table *table, const struct table_column *columns)
{
    *table = (struct table){.columns = columns};
    while (columns[table->width].title) {
        table->width++;
    }
    buf_init(&table->cells, TABLE_MAX);
}

void table_done(struct table *table)
{
    buf_done(&table->cells);
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || (unsigned char)c == 0x7F;
}

// U+0080 to U+009F are control characters too: C2 80 to C2 9F.
static bool is_high_control(const char *c)
{
    return (unsigned char)c[0] == 0xC2 && (unsigned char)c[1] >= 0x80 && (unsigned char)c[1] < 0xA0;
}

static void add_clean(struct buf *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (is_high_control(c)) {
            c++;
            buf_add(out, " ", 1);
        } else {
            buf_add(out, is_control(*c) ? " " : c, 1);
        }
    }
}

void table_add(struct table *table, const char *text)
{
    add_clean(&table->cells, text ? text : "-");
    buf_add(&table->cells, "", 1);
    table->cell_count++;
}

void table_add_number(struct table *table, int64_t number)
{
    buf_printf(&table->cells, "%lld", (long long)number);
    buf_add(&table->cells, "", 1);
    table->cell_count++;
}

void table_put_text(const char *text, FILE *out)
{
    for (const char *c = text; *c; c++) {
        if (is_high_control(c)) {
            c++;
            fputc(' ', out);
        } else {
            fputc(is_control(*c) ? ' ' : *c, out);
        }
    }
}

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

static int characters(const char *text)
{
    int count = 0;

    for (; *text; text++) {
        count += begins_character(*text);
    }
    return count;
}

// The bytes of the first `count` characters.
static int bytes_of(const char *text, int count)
{
    const char *c = text;

    for (; *c; c++) {
        if (begins_character(*c) && count-- == 0) {
            break;
        }
    }
    return (int)(c - text);
}

static int shown(const struct table_column *column, const char *cell)
{
    int count = characters(cell);

    return column->most && count > column->most ? column->most : count;
}

static void widths_of(const struct table *table, int *ret)
{
    const char *cell = table->cells.data;

    for (size_t i = 0; i < table->width; i++) {
        ret[i] = characters(table->columns[i].title);
    }
    for (size_t i = 0; i < table->cell_count; i++, cell += strlen(cell) + 1) {
        size_t at = i % table->width;
        int width = shown(&table->columns[at], cell);

        ret[at] = width > ret[at] ? width : ret[at];
    }
}

static void put_cell(const struct table *table, size_t at, int width, const char *cell, FILE *out)
{
    const struct table_column *column = &table->columns[at];
    bool last = at + 1 == table->width;
    int count = shown(column, cell);
    bool cut = count < characters(cell);
    int blanks = width - count;

    if (column->right) {
        fprintf(out, "%*s", blanks, "");
    }
    fprintf(out, "%.*s%s", bytes_of(cell, cut ? count - 1 : count), cell, cut ? "…" : "");
    if (last) {
        fputc('\n', out);
    } else {
        fprintf(out, "%*s", (column->right ? 0 : blanks) + GAP, "");
    }
}

int table_print(const struct table *table, FILE *out, struct mr_error *err)
{
    int code = buf_status(&table->cells, err);
    const char *cell = table->cells.data;
    int widths[COLUMNS_MAX] = {0};

    if (code) {
        return code;
    }
    if (table->width == 0 || table->width > COLUMNS_MAX) {
        return mr_error_set(err, MR_EINTERNAL, "a table with %zu columns", table->width);
    }
    widths_of(table, widths);
    for (size_t i = 0; i < table->width; i++) {
        put_cell(table, i, widths[i], table->columns[i].title, out);
    }
    for (size_t i = 0; i < table->cell_count; i++, cell += strlen(cell) + 1) {
        put_cell(table, i % table->width, widths[i % table->width], cell, out);
    }
    return 0;
}
