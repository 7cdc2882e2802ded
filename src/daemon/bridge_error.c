// SPDX-License-Identifier: PostgreSQL
//
// Whose fault it is: see bridge_error.h.
//
// What cannot be told is an entry's fault: then it ends as a dead letter and the others go on. The
// rows below are what would make dead letters of a whole stream.

#include "daemon/bridge_error.h"

#include <stddef.h>

#include "base/str.h"

// SQLSTATEs, or how they begin.
static const char *const of_the_times[] = {
    "08",    // connection
    "25",    // transaction state: a server that is read only, an isolation level
    "28",    // login
    "3D",    // no such database
    "3F",    // no such schema
    "40",    // serialization, deadlock
    "42501", // no privilege
    "42704", // no such object
    "42883", // no such function
    "42P01", // no such table
    "53",    // disk, memory, connections
    "55",    // locks, objects in use
    "57",    // cancelled, shut down
    "58",    // disk errors
    "MR002", // the queue is full
    "MR004", // restored from another cluster
};

enum bridge_fault bridge_fault_of(const struct mr_error *err)
{
    if (err->code == MR_ECONNECT) {
        return FAULT_LOST;
    }
    if (!err->sqlstate[0]) { // it did not get as far as the server
        return err->code == MR_ELIMIT ? FAULT_ENTRY : FAULT_TIMES;
    }
    for (size_t i = 0; i < sizeof(of_the_times) / sizeof(of_the_times[0]); i++) {
        if (str_starts(err->sqlstate, of_the_times[i])) {
            return FAULT_TIMES;
        }
    }
    return FAULT_ENTRY;
}
