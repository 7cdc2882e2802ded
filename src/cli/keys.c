// SPDX-License-Identifier: PostgreSQL
//
// Keys from the bytes that a terminal sends: see keys.h.

#include "cli/keys.h"

#include <string.h>

enum { ESCAPE = 0x1B };

// Behind ESC [ or ESC O, by the last byte; parameters such as the 1;5 of Ctrl-Up mean nothing.
static const struct {
    char final;
    int key;
} finals[] = {
    {'A', KEY_UP},   {'B', KEY_DOWN}, {'C', KEY_RIGHT},
    {'D', KEY_LEFT}, {'H', KEY_HOME}, {'F', KEY_END},
};

// Behind ESC [, a number before the tilde.
static const struct {
    char number;
    int key;
} tildes[] = {
    {'1', KEY_HOME},      {'4', KEY_END},  {'5', KEY_PAGE_UP},
    {'6', KEY_PAGE_DOWN}, {'7', KEY_HOME}, {'8', KEY_END},
};

static int of_final(char byte)
{
    for (size_t i = 0; i < sizeof(finals) / sizeof(finals[0]); i++) {
        if (finals[i].final == byte) {
            return finals[i].key;
        }
    }
    return KEY_NONE;
}

static int of_tilde(const struct keys *keys)
{
    for (size_t i = 0; i < sizeof(tildes) / sizeof(tildes[0]); i++) {
        if (tildes[i].number == keys->pending[2] &&
            (keys->pending[3] == '~' || keys->pending[3] == ';')) {
            return tildes[i].key;
        }
    }
    return KEY_NONE;
}

static int plain(char byte)
{
    if (byte == '\r' || byte == '\n') {
        return KEY_ENTER;
    }
    return byte >= ' ' && byte < 0x7F ? byte : KEY_NONE;
}

static int finish(struct keys *keys, int key)
{
    *keys = (struct keys){0};
    return key;
}

// A sequence ends with a byte from @ to ~; the [ and O behind the escape only open one.
static int in_sequence(struct keys *keys, char byte)
{
    if (keys->len == 2) {
        if (byte == '[' || byte == 'O') {
            return KEY_NONE;
        }
        return finish(keys, KEY_NONE); // Alt and a key
    }
    if (byte < '@' || byte > '~') {
        return KEY_NONE;
    }
    if (byte == 'M' && keys->pending[1] == 'O') {
        return finish(keys, KEY_ENTER); // of the number pad; behind [ it is a mouse
    }
    return finish(keys, byte == '~' ? of_tilde(keys) : of_final(byte));
}

int keys_take(struct keys *keys, char byte)
{
    if (byte == ESCAPE) {
        // a second one means that the first was the key itself
        int key = keys->len == 1 ? KEY_ESCAPE : KEY_NONE;

        *keys = (struct keys){.pending = {ESCAPE}, .len = 1};
        return key;
    }
    if (keys->len == 0) {
        return plain(byte);
    }
    if (keys->len == KEYS_SEQUENCE_MAX - 1) {
        return finish(keys, KEY_NONE);
    }
    keys->pending[keys->len++] = byte;
    return in_sequence(keys, byte);
}

bool keys_pending(const struct keys *keys)
{
    return keys->len > 0;
}

int keys_flush(struct keys *keys)
{
    return finish(keys, keys->len == 1 ? KEY_ESCAPE : KEY_NONE);
}
