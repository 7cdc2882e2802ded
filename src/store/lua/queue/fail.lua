-- SPDX-License-Identifier: PostgreSQL
-- A job of a lease failed: it comes back later, or is a dead letter. ARGV: the lease, the id, the error, when it comes back in ms (0: by the
-- queue's backoff), 1 where it may come back, a random number of 32 bits, and, where there is a new one, the state. Returns scheduled or dead.

local lease, id, failure, retry_ms, retry, random, state =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1', tonumber(ARGV[6]), ARGV[7]

local ids, entries, priority = held(lease, {id})
if not ids then
  return entries
end
local job = redis.call('HMGET', job_key(id), 'attempt', 'max_attempts')
local attempt, most = number_of(job[1], 1), number_of(job[2], 1)
local due_ms = now_ms + (retry_ms > 0 and retry_ms or backoff(attempt, random))
check_keys()
let_go(lease, ids, entries, priority, 'worked')
redis.call('HSET', job_key(id), 'lost', 0)
if state then
  redis.call('HSET', job_key(id), 'state', state)
end
if not retry or attempt >= most then
  bury(id, 'failed', failure)
  return 'dead'
end
redis.call('HSET', job_key(id), 'attempt', attempt + 1)
put_off(id, due_ms)
return 'scheduled'
