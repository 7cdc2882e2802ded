// SPDX-License-Identifier: PostgreSQL
//
// Drives one contender once: drive CONTENDER MODE [NAME=VALUE...]. Called by bench/peers/run.py,
// which brings the server in the PG* variables or BEANSTALKD_SOCKET. Prints one JSON object.

#include "peer.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../db.h"

static const struct peer *const peers[] = {
    &peer_textbook,         &peer_visibility, &peer_millrace,
    &peer_delete_returning, &peer_pgq,        &peer_beanstalkd,
};

static const struct {
    const char *name;
    void (*run)(const struct request *request);
} modes[] = {
    {"setup", mode_setup},   {"enqueue", mode_enqueue}, {"drain", mode_drain},
    {"steady", mode_steady}, {"latency", mode_latency}, {"notify", mode_notify},
};

// jobs is a long and set apart.
static const struct {
    const char *name;
    size_t offset;
} settings[] = {
    {"chunk", offsetof(struct request, chunk)},
    {"batch", offsetof(struct request, batch)},
    {"workers", offsetof(struct request, workers)},
    {"producers", offsetof(struct request, producers)},
    {"slices", offsetof(struct request, slices)},
    {"seconds", offsetof(struct request, seconds)},
    {"backlog", offsetof(struct request, backlog)},
    {"tick_jobs", offsetof(struct request, tick_jobs)},
    {"tick_ms", offsetof(struct request, tick_ms)},
};

enum {
    PEER_COUNT = sizeof peers / sizeof peers[0],
    MODE_COUNT = sizeof modes / sizeof modes[0],
    SETTING_COUNT = sizeof settings / sizeof settings[0],
    SETTING_MAX = 100000000,
};

static void usage(void)
{
    fprintf(stderr, "usage: drive CONTENDER MODE [NAME=VALUE...]\ncontenders:");
    for (size_t i = 0; i < PEER_COUNT; i++) {
        fprintf(stderr, " %s", peers[i]->name);
    }
    fprintf(stderr, "\nmodes:");
    for (size_t i = 0; i < MODE_COUNT; i++) {
        fprintf(stderr, " %s", modes[i].name);
    }
    fprintf(stderr, "\nsettings: jobs");
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        fprintf(stderr, " %s", settings[i].name);
    }
    fprintf(stderr, "\n");
    exit(2);
}

static long number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 0 || value > SETTING_MAX) {
        die("not a number from 0 to %d: %s", SETTING_MAX, text);
    }
    return value;
}

static void set(struct request *request, const char *text)
{
    const char *value = strchr(text, '=');
    size_t length = value ? (size_t)(value - text) : 0;
    if (length == 4 && strncmp(text, "jobs", 4) == 0) {
        request->jobs = number(value + 1);
        return;
    }
    for (size_t i = 0; value && i < SETTING_COUNT; i++) {
        if (strlen(settings[i].name) == length && strncmp(settings[i].name, text, length) == 0) {
            *(int *)((char *)request + settings[i].offset) = (int)number(value + 1);
            return;
        }
    }
    usage();
}

static const struct peer *find_peer(const char *name)
{
    for (size_t i = 0; i < PEER_COUNT; i++) {
        if (strcmp(peers[i]->name, name) == 0) {
            return peers[i];
        }
    }
    usage();
    return NULL;
}

int main(int argc, char **argv)
{
    struct request request = {
        .jobs = 10000,
        .chunk = 1000,
        .batch = 500,
        .workers = 1,
        .producers = 1,
        .slices = 1,
        .seconds = 5,
        .backlog = 20000,
        .tick_jobs = 0,
        .tick_ms = 10,
    };
    if (argc < 3) {
        usage();
    }
    request.peer = find_peer(argv[1]);
    for (int i = 3; i < argc; i++) {
        set(&request, argv[i]);
    }
    for (size_t i = 0; i < MODE_COUNT; i++) {
        if (strcmp(modes[i].name, argv[2]) == 0) {
            modes[i].run(&request);
            return 0;
        }
    }
    usage();
}
