// SPDX-License-Identifier: PostgreSQL
//
// Upkeep: see maintain.h.

#include "daemon/maintain.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/link.h"

// After a failure: nothing that fails is mended by asking every second.
#define FAILED_PAUSE_MS 5000
// The share of the cadence that is chance, so that a fleet does not ask in step.
#define JITTER_SHARE 10

struct maintain {
    struct maintain_options options;
    struct link *link;
    int64_t rounds;
    bool asked; // a round is under way
    bool stopping;
    char trouble[MR_ERROR_MESSAGE_SIZE]; // as last told
    void (*ended)(void *arg);
    void *ended_arg;
};

static void ask_again_in(struct maintain *maintain, int64_t wait_ms)
{
    int64_t chance_ms = wait_ms / JITTER_SHARE;

    wire_set_timer(link_wire(maintain->link),
                   clock_ms() + wait_ms - chance_ms + random() % (2 * chance_ms + 1));
}

static void log_duties(const PGresult *result)
{
    if (!log_wants(LEVEL_DEBUG)) {
        return;
    }
    for (int row = 0; row < PQntuples(result); row++) {
        const struct log_field fields[] = {
            LOG_TEXT_FIELD("duty", PQgetvalue(result, row, 0)),
            LOG_NUMBER_FIELD("done", atoll(PQgetvalue(result, row, 1))),
        };
        log_put(LEVEL_DEBUG, "maintain.duty", fields, 2, "%s", PQgetvalue(result, row, 0));
    }
}

static void failed(struct maintain *maintain, const struct mr_error *err)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("sqlstate", err->sqlstate[0] ? err->sqlstate : NULL),
        LOG_TEXT_FIELD("detail", err->detail[0] ? err->detail : NULL),
        LOG_TEXT_FIELD("hint", err->hint[0] ? err->hint : NULL),
    };

    if (link_is_news(maintain->trouble, err->message)) {
        log_put(LEVEL_WARNING, "maintain.failed", fields, sizeof(fields) / sizeof(fields[0]),
                "upkeep failed, trying again: %s", err->message);
    }
}

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct maintain *maintain = arg;

    maintain->asked = false;
    if (maintain->stopping) {
        return;
    }
    if (err && err->code == MR_ECONNECT) { // the link has said so, and tells when it is back
        return;
    }
    if (err) {
        failed(maintain, err);
        ask_again_in(maintain, FAILED_PAUSE_MS);
        return;
    }
    if (maintain->trouble[0]) {
        log_put(LEVEL_INFO, "maintain.recovered", NULL, 0, "upkeep works again");
        maintain->trouble[0] = '\0';
    }
    maintain->rounds++;
    log_duties(result);
    ask_again_in(maintain, maintain->options.every_ms);
}

static void ask(struct maintain *maintain)
{
    struct mr_error err;
    AUTO_CALL call;

    call_init(&call, CALL_MAINTAIN);
    if (maintain->asked || !wire_connected(link_wire(maintain->link))) {
        return;
    }
    maintain->asked = wire_send(link_wire(maintain->link), &call, answered, maintain, &err) == 0;
    if (!maintain->asked) {
        failed(maintain, &err);
        ask_again_in(maintain, FAILED_PAUSE_MS);
    }
}

static void on_timer(void *arg)
{
    ask(arg);
}

static void on_connected(void *arg)
{
    struct maintain *maintain = arg;

    ask(maintain);
    if (maintain->options.connected) {
        maintain->options.connected(maintain->options.arg);
    }
}

int maintain_new(const struct maintain_options *options, uv_loop_t *loop, struct maintain **ret,
                 struct mr_error *err)
{
    struct maintain *maintain = calloc(1, sizeof(*maintain));

    if (!maintain) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    const struct link_options link_options = {
        .part = "maintain",
        .dsn = options->dsn,
        .pooler = options->pooler,
    };
    const struct link_hooks hooks = {
        .connected = on_connected,
        .timer = on_timer,
        .arg = maintain,
    };
    maintain->options = *options;
    maintain->options.dsn = NULL; // the link has its copy
    int code = link_new(&link_options, &hooks, loop, &maintain->link, err);
    if (code) {
        free(maintain);
        return code;
    }
    *ret = maintain;
    return 0;
}

static void on_closed(void *arg)
{
    struct maintain *maintain = arg;
    void (*ended)(void *arg) = maintain->ended;
    void *ended_arg = maintain->ended_arg;

    free(maintain);
    ended(ended_arg);
}

void maintain_stop(struct maintain *maintain, void (*ended)(void *arg), void *arg)
{
    maintain->stopping = true;
    maintain->ended = ended;
    maintain->ended_arg = arg;
    link_close(maintain->link, on_closed, maintain);
}

int64_t maintain_rounds(const struct maintain *maintain)
{
    return maintain->rounds;
}

int64_t maintain_reconnects(const struct maintain *maintain)
{
    return link_reconnects(maintain->link);
}
