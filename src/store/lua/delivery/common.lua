-- SPDX-License-Identifier: PostgreSQL
-- What the scripts of the delivery share: it stands before each of them. See docs/delivery.md.
--
-- KEYS[1] is mr:delivery:{QUEUE}:jobs. Every other key begins with mr:delivery:{QUEUE}, so that all of a queue are in one slot of a Redis Cluster:
--
--   :jobs              stream with the group `workers`: an entry is a job that a relay holds the lease of
--   :live:EPOCH        text, with a time to live: the relay with this epoch is alive; its value is the time after which it takes entries from a worker
--   :outcomes:EPOCH    stream: what became of that relay's entries
--   :relays            hash: the epochs that may have left outcomes, and since when
--   :cancelled         set: entries whose job was cancelled
--
-- 1. An entry is deleted when it is acknowledged and not before: the stream has what waits or runs.
-- 2. Only the consumer that an entry is pending for says what became of it, and its acknowledgement and its outcome are one step.
-- 3. What takes memory comes first in a script: a Redis that is full refuses it before anything has changed.

local jobs = KEYS[1]
local base = string.sub(jobs, 1, -6)
local group = 'workers'
local KEEP_MS = 3600000 -- outcomes that nobody fetches

local function live_key(epoch)
  return base .. ':live:' .. epoch
end

local function outcomes_key(epoch)
  return base .. ':outcomes:' .. epoch
end

local function end_entry(entry)
  redis.call('XACK', jobs, group, entry)
  redis.call('XDEL', jobs, entry)
end

local function is_pending_for(entry, consumer)
  return #redis.call('XPENDING', jobs, group, entry, entry, 1, consumer) > 0
end

