// SPDX-License-Identifier: PostgreSQL
//
// What the stations of one configured worker share when it serves several shards: its concurrency,
// and the knowledge which shard is where. Each station has a claim connection and a handler of its
// own; what one of them runs, or has asked for just now, is no room for the others. So a shard with
// nothing to do holds none.

#ifndef MILLRACE_DAEMON_STATION_SHARE_H
#define MILLRACE_DAEMON_STATION_SHARE_H

#include "client/shard.h"

struct station;

struct station_share {
    struct shard_set set;
    struct station *stations[SHARD_NUMBERS]; // by address; NULL: it does not run
    bool starved[SHARD_NUMBERS];             // it had room, and the others left it none
    int users;                               // for whoever makes it
};

#endif
