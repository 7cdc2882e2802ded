// SPDX-License-Identifier: PostgreSQL
//
// A circuit breaker: see breaker.h.
//
// Jobs that were started before it opened still end while it is open: what became of them is
// known already, so they change nothing. While a probe is under way such a latecomer cannot be
// told from it and decides in its place.

#include "base/breaker.h"

void breaker_init(struct breaker *breaker, struct breaker_options options)
{
    *breaker = (struct breaker){.options = options, .status = BREAKER_CLOSED};
}

// How long it stays open: after a probe that failed twice as long as the last time.
static int64_t next_wait_ms(const struct breaker *breaker)
{
    const struct breaker_options *options = &breaker->options;

    if (breaker->status != BREAKER_HALF_OPEN || options->open_max_ms <= options->open_ms) {
        return options->open_ms;
    }
    return breaker->wait_ms < options->open_max_ms / 2 ? breaker->wait_ms * 2
                                                       : options->open_max_ms;
}

static void trip(struct breaker *breaker, int64_t now_ms)
{
    const struct breaker_options *options = &breaker->options;
    double more = options->random ? options->jitter * options->random() : 0;

    breaker->wait_ms = next_wait_ms(breaker);
    breaker->status = BREAKER_OPEN;
    breaker->opened_at_ms = now_ms;
    breaker->open_at_ms = now_ms + breaker->wait_ms + (int64_t)(more * (double)breaker->wait_ms);
    breaker->probing = false;
}

static int64_t reopens_at_ms(const struct breaker *breaker)
{
    return breaker->open_at_ms;
}

int breaker_allows(struct breaker *breaker, int room, int64_t now_ms)
{
    if (breaker->status == BREAKER_OPEN && now_ms >= reopens_at_ms(breaker)) {
        breaker->status = BREAKER_HALF_OPEN;
    }
    switch (breaker->status) {
    case BREAKER_CLOSED: return room;
    case BREAKER_OPEN: return 0;
    case BREAKER_HALF_OPEN: return breaker->probing || room < 1 ? 0 : 1;
    }
    return 0;
}

int64_t breaker_retry_at_ms(const struct breaker *breaker)
{
    return breaker->status == BREAKER_OPEN ? reopens_at_ms(breaker) : 0;
}

void breaker_started(struct breaker *breaker, int count)
{
    if (breaker->status == BREAKER_HALF_OPEN && count > 0) {
        breaker->probing = true;
    }
}

bool breaker_good(struct breaker *breaker)
{
    switch (breaker->status) {
    case BREAKER_CLOSED: breaker->failures = 0; return false;
    case BREAKER_OPEN: return false;
    case BREAKER_HALF_OPEN: break;
    }
    if (!breaker->probing) {
        return false;
    }
    breaker->status = BREAKER_CLOSED;
    breaker->failures = 0;
    breaker->probing = false;
    return true;
}

bool breaker_failed(struct breaker *breaker, int64_t now_ms)
{
    bool counts = breaker->status == BREAKER_CLOSED || breaker->probing;

    if (!counts || breaker->options.failures <= 0) {
        return false;
    }
    breaker->failures += breaker->failures < INT32_MAX;
    if (breaker->failures < breaker->options.failures) {
        return false;
    }
    trip(breaker, now_ms);
    return true;
}

void breaker_neutral(struct breaker *breaker)
{
    breaker->probing = false;
}
