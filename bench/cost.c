// SPDX-License-Identifier: PostgreSQL
//
// Measures what Millrace costs, as ratios in one run: cost [--small] [ITEM...]. Called by
// bench/run, which brings the server. Status 0: all bars kept; 1: some missed; 2: broken.

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db.h"
#include "items.h"
#include "report.h"

struct item {
    const char *name;
    void (*run)(bool small);
    const char *summary;
    bool shares_big; // others begin without that database and its open writer, which keeps
                     // segments from being sealed in every database of the server
};

static const struct item items[] = {
    {"wal", item_wal, "WAL bytes a job", false},
    {"history", item_history,
     "claim rate with a full ring, an archive and 200 lanes, over a fresh schema", false},
    {"depth", item_depth, "drain rate 2,000,000 deep over 10,000 deep", false},
    {"snapshot", item_snapshot, "drain rate under a held snapshot, last fifth over first", false},
    {"empty", item_empty, "time of an empty claim behind 10 million finished jobs", true},
    {"plans", item_plans, "plans of claim, complete, promote, rescue at 10 million rows", true},
    {"depthcall", item_depthcall, "time of depth() at 5 million over 5 thousand", false},
    {"disk", item_disk, "size on disk after 5 million jobs in and out", false},
    {"enqueue_wait", item_enqueue_wait, "p99 of enqueue during a dump with rotation, over without",
     false},
    {"worker", item_worker, "drain by a handler in C and in another process, over the textbook",
     false},
    {"pickup", item_pickup, "time from a commit to the handler, beside a bare NOTIFY", false},
    {"idle", item_idle, "what an idle daemon with three workers costs", false},
    {"features", item_features, "drain rate of a queue that uses a feature, over a plain one",
     false},
    {"capture", item_capture,
     "time of an insert of 100,000 rows into a captured table, over a plain one", false},
    {"fair", item_fair, "how long a tenant waits beside one a million jobs deep, and drain rates",
     false},
    {"looking", item_looking, "time of each page and filter of the dashboard with 5 million jobs",
     false},
};

enum {
    ITEM_COUNT = sizeof items / sizeof items[0],
};

static int usage(void)
{
    fprintf(stderr, "usage: cost [--small] [ITEM...]\nitems:\n");
    for (size_t i = 0; i < ITEM_COUNT; i++)
        fprintf(stderr, "  %-13s %s\n", items[i].name, items[i].summary);
    return 2;
}

static bool is_item(const char *name)
{
    for (size_t i = 0; i < ITEM_COUNT; i++) {
        if (strcmp(items[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool is_chosen(const char *name, int argc, char **argv)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-')
            continue;
        any = true;
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return !any;
}

int main(int argc, char **argv)
{
    bool small = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--small") == 0)
            small = true;
        else if (!is_item(argv[i]))
            return usage();
    }
    for (size_t i = 0; i < ITEM_COUNT; i++) {
        if (is_chosen(items[i].name, argc, argv)) {
            progress("%s: %s", items[i].name, items[i].summary);
            if (!items[i].shares_big)
                big_drop();
            items[i].run(small);
        }
    }
    big_drop();
    return report_end(small) > 0;
}
