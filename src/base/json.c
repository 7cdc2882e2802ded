// SPDX-License-Identifier: PostgreSQL
//
// Writing JSON: see json.h.

#include "base/json.h"

void json_add_string(struct buf *out, const char *text)
{
    buf_puts(out, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            buf_printf(out, "\\%c", *c);
        } else if ((unsigned char)*c < 0x20) {
            buf_printf(out, "\\u%04x", (unsigned)*c);
        } else {
            buf_add(out, c, 1);
        }
    }
    buf_puts(out, "\"");
}
