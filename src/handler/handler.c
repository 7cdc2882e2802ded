// SPDX-License-Identifier: PostgreSQL
//
// The kinds of handlers: see handler.h.

#include "handler/handler.h"

const struct handler_ops *handler_ops_of(enum handler_kind kind)
{
    static const struct handler_ops *const table[] = {
        [HANDLER_EXEC] = &handler_exec,     [HANDLER_RUN] = &handler_run,
        [HANDLER_HTTP] = &handler_http,     [HANDLER_SQL] = &handler_sql,
        [HANDLER_PLUGIN] = &handler_plugin,
    };

    return table[kind];
}
