// SPDX-License-Identifier: PostgreSQL
//
// Lines of a script as words: see conform.h.

#include <stdlib.h>
#include <string.h>

#include "conform.h"

#define REPEAT_MARK "@rep:"
#define QUOTED_MARK "@quoted:"

static int hex_of(const char *at)
{
    char digits[3] = {at[0], at[0] ? at[1] : '\0', '\0'};
    char *end = NULL;
    long value = strtol(digits, &end, 16);

    if (strlen(digits) != 2 || *end || value == 0) {
        script_is_wrong("\\x needs two digits and cannot be zero");
    }
    return (int)value;
}

// Behind the opening quote. Returns where the rest of the line begins.
static char *read_quoted(char *at, char quote, char **ret)
{
    char *to = at;

    *ret = at;
    for (; *at != quote; at++) {
        char c = *at;
        if (!c) {
            script_is_wrong("a quote is left open");
        }
        if (c == '\\' && quote == '"') {
            at++;
            c = *at;
            if (c == 'x') {
                c = (char)hex_of(at + 1);
                at += 2;
            } else if (c == 'n') {
                c = '\n';
            }
        }
        *to++ = c;
    }
    *to = '\0';
    return at + 1;
}

// Words that were made, until words_done().
static struct made {
    struct made *next;
    char text[];
} * made;

static char *make(size_t size)
{
    struct made *word = malloc(sizeof(*word) + size);

    if (!word) {
        script_is_wrong("out of memory");
    }
    word->next = made;
    made = word;
    return word->text;
}

void words_done(void)
{
    while (made) {
        struct made *next = made->next;
        free(made);
        made = next;
    }
}

// TEXT:COUNT, between two of `quote`.
static char *repeat(const char *text, const char *quote)
{
    const char *colon = strrchr(text, ':');
    size_t size = (size_t)(colon - text);
    int64_t count = number_of(colon + 1);

    if (size == 0 || count < 1) {
        script_is_wrong("%s cannot be repeated", text);
    }
    char *whole = make(size * (size_t)count + 3);
    char *at = stpcpy(whole, quote);
    for (int64_t i = 0; i < count; i++) {
        memcpy(at, text, size);
        at += size;
    }
    memcpy(at, quote, strlen(quote) + 1);
    return whole;
}

static bool begins(const char *word, const char *mark)
{
    return strncmp(word, mark, strlen(mark)) == 0;
}

static char *special(char *word)
{
    if (strcmp(word, "@null") == 0) {
        return NULL;
    }
    if (begins(word, QUOTED_MARK)) {
        return repeat(word + strlen(QUOTED_MARK), "\"");
    }
    return begins(word, REPEAT_MARK) ? repeat(word + strlen(REPEAT_MARK), "") : word;
}

int words_split(char *line, char **ret, int max)
{
    int count = 0;

    for (char *at = line; *(at += strspn(at, " ")) != '\0';) {
        if (count == max) {
            script_is_wrong("too many words");
        }
        if (*at == '"' || *at == '\'') {
            at = read_quoted(at + 1, *at, &ret[count++]);
            continue;
        }
        char *word = at;
        at += strcspn(at, " ");
        if (*at) {
            *at++ = '\0';
        }
        ret[count++] = special(word);
    }
    return count;
}
