// SPDX-License-Identifier: PostgreSQL
//
// Aligned tables for people: see table.h.

#include "cli/table.h"

#include <string.h>

#include "cli/width.h"

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

static void add_clean(struct buf *out, const char *text)
{
    while (*text) {
        struct glyph glyph = glyph_of(text);

        buf_add(out, glyph.bytes, glyph.len);
        text += glyph.taken;
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
    while (*text) {
        struct glyph glyph = glyph_of(text);

        fwrite(glyph.bytes, 1, glyph.len, out);
        text += glyph.taken;
    }
}

static int shown(const struct table_column *column, const char *cell)
{
    int width = width_of(cell);

    return column->most && width > column->most ? column->most : width;
}

static void widths_of(const struct table *table, int *ret)
{
    const char *cell = table->cells.data;

    for (size_t i = 0; i < table->width; i++) {
        ret[i] = width_of(table->columns[i].title);
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
    AUTO_BUF text;

    buf_init(&text, TABLE_MAX);
    // a wide character that does not fit leaves a column free
    int blanks = width - width_add(&text, cell, shown(column, cell));
    if (column->right) {
        fprintf(out, "%*s", blanks, "");
    }
    fputs(buf_peek(&text), out);
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
