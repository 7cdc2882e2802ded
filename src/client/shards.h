// SPDX-License-Identifier: PostgreSQL
//
// The connections of a client of several shards, and how each of them does.
//
// 1. An address is used only after its database has said which shard it is, and again after every
//    reconnect: another server may answer there. What it says is looked at every SHARD_LOOK_MS.
// 2. A shard that is not connected is passed over at once; its wire mends itself meanwhile.
// 3. One whose call failed, or had no answer within timeout_ms, rests: SHARD_REST_MS, doubling to
//    SHARD_REST_MAX_MS. The next call after that is the probe.
// 4. Whoever needs one certain shard waits for it as long as a call may take.

#ifndef MILLRACE_CLIENT_SHARDS_H
#define MILLRACE_CLIENT_SHARDS_H

#include <millrace/millrace.h>
#include <stdbool.h>

#include "client/queue_ops.h"
#include "client/shard.h"

#define SHARD_LOOK_MS     3000
#define SHARD_REST_MS     1000
#define SHARD_REST_MAX_MS 30000

struct shards;

// Connects to all at once. One that does not answer is left for later, as long as another does.
// Fails with what makes an address useless (see shard_set_admit()), or where none can be reached.
int shards_open(const mr_conn_options *options, const char *dsn, struct shards **ret,
                mr_error *err);
void shards_free(struct shards *shards); // NULL is fine

int shards_count(const struct shards *shards);
const struct shard_set *shards_set(const struct shards *shards);

// Whose turn it is: rises with each call.
int shards_turn(struct shards *shards);

// The connection at an address if it can be used now; NULL: err says why not. shards_tell()
// follows.
mr_conn *shards_use(struct shards *shards, int at, mr_error *err);
// The same for whoever needs this one: waits for it.
mr_conn *shards_need(struct shards *shards, int at, mr_error *err);
// What came of the call: 0 or its code. Names the shard in err where the failure is one of its own.
// Returns the code.
int shards_tell(struct shards *shards, int at, int code, mr_error *err);

// Lets those that were down come back, and learns what has changed: for calls that otherwise would
// only see the shards of their own keys.
void shards_look_around(struct shards *shards);

// The address of a shard, by its number. Fails with MR_ECONNECT where it may be one that cannot be
// reached, MR_EUNKNOWN where there is none.
int shards_find(struct shards *shards, int number, int *ret, mr_error *err);

// The connection at an address, whatever its state.
mr_conn *shards_conn(const struct shards *shards, int at);

// Whether it takes new jobs, as far as it was looked at.
bool shards_accepts(const struct shards *shards, int at, mr_error *err);

// Where the toolbox is: the shard with the lowest number.
mr_conn *shards_toolbox(struct shards *shards);

// What a code says about another shard's chances: nothing was written, and the reason is that
// one's.
bool shards_passable(int code);

// ---- the enqueuing members of queue_shards ----

int shards_enqueue(mr_conn *conn, const mr_job_spec *job, int64_t *ret_id, mr_error *err);
int shards_enqueue_many(mr_conn *conn, const mr_job_spec *job, const char *const *args,
                        size_t count, size_t chunk, int64_t *ret_ids, size_t *ret_done,
                        mr_error *err);
int shards_enqueue_jobs(mr_conn *conn, const mr_job_spec *jobs, size_t count, size_t chunk,
                        int64_t *ret_ids, size_t *ret_done, mr_error *err);

#endif
