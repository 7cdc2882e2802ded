// SPDX-License-Identifier: PostgreSQL
//
// A circuit breaker: see breaker.h.
//
// Jobs that were started before it opened still end while it is open: what became of them is
// known already, so they change nothing. While a probe is under way such a latecomer cannot be
// told from it and decides in its place.

#include "handler/breaker.h"

void breaker_init(struct breaker *breaker, struct breaker_options options)
{
    *breaker = (struct breaker){.options = options, .status = BREAKER_CLOSED};
}

static void trip(struct breaker *breaker, int64_t now_ms)
{
    breaker->status = BREAKER_OPEN;
    breaker->opened_at_ms = now_ms;
    breaker->probing = false;
}

static int64_t reopens_at_ms(const struct breaker *breaker)
{
    return breaker->opened_at_ms + breaker->options.open_ms;
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
