// SPDX-License-Identifier: PostgreSQL
//
// Keys from the bytes that a terminal sends. Special keys come as an escape sequence, whose first
// byte is the escape key's own: whether one follows only time can tell (see keys_flush).

#ifndef MILLRACE_CLI_KEYS_H
#define MILLRACE_CLI_KEYS_H

#include <stdbool.h>
#include <stddef.h>

// What is not listed is its character: 'q'.
enum key {
    KEY_NONE = 0, // nothing yet, or nothing that means anything here
    KEY_ENTER = 256,
    KEY_ESCAPE,
    KEY_UP,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_HOME,
    KEY_END,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
};

// A sequence that is longer is dropped.
enum { KEYS_SEQUENCE_MAX = 16 };

struct keys {
    char pending[KEYS_SEQUENCE_MAX]; // an unfinished sequence, from its escape on
    size_t len;
};

// How long to wait for the rest of a sequence before keys_flush(), in milliseconds; over a slow
// line its bytes come apart.
enum { KEYS_WAIT_MS = 50 };

// Takes one byte. Returns a key, or KEY_NONE. Bytes of characters beyond ASCII mean nothing here.
int keys_take(struct keys *keys, char byte);

// Whether an unfinished sequence waits for its rest.
bool keys_pending(const struct keys *keys);

// Nothing more came: a lone escape was the key, anything else is dropped.
int keys_flush(struct keys *keys);

#endif
