-- SPDX-License-Identifier: PostgreSQL
-- What the scripts of the queue share: it stands before each of them.
--
-- KEYS[1] is mr:queue:{NAME}. Every other key begins with it, so that all of a queue are in one slot of a Redis Cluster:
--
--   mr:queue:{q}             hash: no (the queue's number), jobs and leases (the last numbers given), finished_us (when a lease was), tidied_ms
--   mr:queue:{q}:settings    hash: what people set; see docs/redis.md
--   mr:queue:{q}:lanes       sorted set: the priorities that have a stream
--   mr:queue:{q}:lane:50     stream of a priority, with the group `workers`: an entry is the id of a job that is available or running
--   mr:queue:{q}:job:ID      hash: the job
--   mr:queue:{q}:later       sorted set: jobs by the time at which they become available
--   mr:queue:{q}:lease:L     hash: worker, claimed_us, ms, priority, open (how many), worked, and for each of its jobs the entry; '' once it is not held any more
--   mr:queue:{q}:leases      sorted set: leases by their ends
--   mr:queue:{q}:dead        sorted set: dead letters by the time at which they died
--
-- 1. A job that has not ended is in exactly one of: a lane (available; with a lease that names its entry: running), later, dead.
-- 2. An entry is deleted when it is acknowledged and not before; nothing else shortens a stream.
-- 3. A lease is live as long as its hash is there. Its last job, or its rescue, takes the hash away; from then on the token is void.
-- 4. A script reads and checks first and writes afterwards, and so does each part of claim: one that refuses, or raises an error, has changed nothing.
--    Redis does not take back what a script did before its error. So fields that should be numbers are read with number_of(), and keys that
--    may be another program's are looked at by check_keys() and check_lane() before the first write.
-- 5. The clock is the server's.
-- 6. A Redis that is full refuses a script at its first write, if that may need memory, and lets it go on otherwise: only enqueue begins with such
--    a one, so that what is there can still be worked off.

local queue = KEYS[1]
local group = 'workers'
local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now_ms = math.floor(now_us / 1000)

local PART = 1000 -- values that go into one command

local function job_key(id)
  return queue .. ':job:' .. id
end

local function lane_key(priority)
  return queue .. ':lane:' .. priority
end

local function lease_key(lease)
  return queue .. ':lease:' .. lease
end

local function whole(value)
  return string.format('%.0f', value)
end

-- A field that should hold a whole number.
local function number_of(value, default)
  local number = tonumber(value or '')
  return number and math.abs(number) < 2 ^ 53 and math.floor(number) or default
end

-- A setting of the queue's; what is no number, or out of bounds, does not count.
local function fraction(name, default, least, most)
  local value = tonumber(redis.call('HGET', queue .. ':settings', name) or '')
  if value and value >= least and value <= most then
    return value
  end
  return default
end

-- One that is a whole number: what is behind the point does not count.
local function setting(name, default, least, most)
  return math.floor(fraction(name, default, least, most))
end

local function in_parts(list, call)
  for from = 1, #list, PART do
    call(unpack(list, from, math.min(from + PART - 1, #list)))
  end
end

-- ---- where jobs wait ----

-- Raise an error where a key has another type.
local function check_keys()
  redis.call('HLEN', queue)
  redis.call('HLEN', queue .. ':settings')
  for _, name in ipairs({':lanes', ':later', ':leases', ':dead'}) do
    redis.call('ZCARD', queue .. name)
  end
end

local checked = {}

local function check_lane(priority)
  if not checked[priority] then
    redis.call('XLEN', lane_key(priority))
    checked[priority] = true
  end
end

-- The lane that a job goes to, which can be written; nothing where the job is gone.
local function lane_of(id)
  local priority = redis.call('HGET', job_key(id), 'priority')
  if not priority then
    return nil
  end
  priority = string.find(priority, '^%d+$') and priority or '50'
  check_lane(priority)
  return priority
end

local known = {} -- lanes that this call has seen to be there

local function append(id, priority)
  if not known[priority] and redis.call('ZADD', queue .. ':lanes', priority, priority) == 1 then
    redis.pcall('XGROUP', 'CREATE', lane_key(priority), group, '0', 'MKSTREAM') -- it may be there
  end
  known[priority] = true
  redis.call('XADD', lane_key(priority), '*', 'id', id)
end

local function put_off(id, due_ms)
  redis.call('ZADD', queue .. ':later', whole(due_ms), id)
end

-- base * factor^(attempt - 1), plus up to jitter of it, at most cap; `random` is the caller's, a whole number of 32 bits: Redis has the same numbers
-- each time, and a fraction would be written with the comma of the caller's language.
local function backoff(attempt, random)
  local delay = setting('retry_base_ms', 2000, 1, 1e12) * fraction('retry_factor', 2, 1, 100) ^ math.min(attempt - 1, 60)
  delay = delay * (1 + fraction('retry_jitter', 0.5, 0, 1) * random / 4294967295)
  return math.floor(math.min(delay, setting('retry_cap_ms', 3600000, 1, 1e12)))
end

-- Dead letters are bounded by number and by age: each new one takes away some that are too many.
local function bury(id, cause, failure)
  redis.call('HSET', job_key(id), 'cause', cause, 'failure', failure, 'died_us', whole(now_us))
  redis.call('ZADD', queue .. ':dead', now_ms, id)
  local most = setting('dead_max', 100000, 1, 1e9)
  local oldest_ms = now_ms - setting('dead_retention_ms', 2592000000, 1, 1e13)
  for _ = 1, 10 do
    local first = redis.call('ZRANGE', queue .. ':dead', 0, 0, 'WITHSCORES')
    if redis.call('ZCARD', queue .. ':dead') <= most and tonumber(first[2]) >= oldest_ms then
      return
    end
    redis.call('ZREM', queue .. ':dead', first[1])
    redis.call('DEL', job_key(first[1]))
  end
end

-- ---- leases ----

local function by_number(a, b)
  if #a ~= #b then
    return #a < #b
  end
  return a < b
end

-- The open jobs of a lease: those in `wanted`, or all where it is empty. Returns their ids, their entries and their priority; nil and
-- a refusal, which is a status, where the lease is lost or a job is not held.
local function held(lease, wanted)
  local key = lease_key(lease)
  local priority = redis.call('HGET', key, 'priority')
  local ids, entries, seen = {}, {}, {}
  if not priority then
    return nil, redis.status_reply('MRLOST')
  end
  if #wanted == 0 then
    local all = redis.call('HGETALL', key)
    for i = 1, #all, 2 do
      if string.find(all[i], '^%d') and all[i + 1] ~= '' then
        ids[#ids + 1] = all[i]
        seen[all[i]] = all[i + 1]
      end
    end
    table.sort(ids, by_number)
    for i = 1, #ids do
      entries[i] = seen[ids[i]]
    end
    return ids, entries, priority
  end
  for i = 1, #wanted do
    local entry = string.find(wanted[i], '^%d') and redis.call('HGET', key, wanted[i])
    if not entry then
      return nil, redis.status_reply('MRUNHELD ' .. wanted[i])
    elseif entry == '' or seen[wanted[i]] then
      return nil, redis.status_reply('MRLOST')
    end
    seen[wanted[i]] = true
    entries[i] = entry
  end
  return wanted, entries, priority
end

-- Takes jobs out of a lease. Their entries are acknowledged, and deleted with that. how: worked (completed or failed), back or lost; a lease
-- that was worked on and is finished says that the fleet is not stalled.
local function let_go(lease, ids, entries, priority, how)
  local lane, key = lane_key(priority), lease_key(lease)
  local open = number_of(redis.call('HGET', key, 'open'), 0) - #ids
  in_parts(entries, function(...)
    redis.call('XACK', lane, group, ...)
    redis.call('XDEL', lane, ...)
  end)
  if open <= 0 or how == 'lost' then
    if how == 'worked' or (how == 'back' and redis.call('HEXISTS', key, 'worked') == 1) then
      redis.call('HSET', queue, 'finished_us', whole(now_us))
    end
    redis.call('DEL', key)
    redis.call('ZREM', queue .. ':leases', lease)
    return
  end
  redis.call('HSET', key, 'open', open)
  for i = 1, #ids do
    redis.call('HSET', key, ids[i], '')
  end
  if how == 'worked' then
    redis.call('HSET', key, 'worked', 1)
  end
end
