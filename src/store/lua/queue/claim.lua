-- SPDX-License-Identifier: PostgreSQL
-- Takes jobs under one lease. ARGV: the worker's name, how many at most, the lease in ms (0: as the queue says), 1 where `state` is wanted,
-- a random token, a random number of 32 bits. Returns the lease, its end and the time in microseconds, the priority, and the jobs;
-- nothing where there is nothing to do.
--
-- Before that a bounded slice of upkeep: jobs that are due become available, leases that have ended are rescued. Ends are kept by lease, in
-- a sorted set, and not found with XAUTOCLAIM: that knows one idle time for the whole group, while each lease has a length of its own and is
-- renewed, and it would look through all that is pending.

local worker, max_jobs, lease_ms, with_state, token, random =
  ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5], tonumber(ARGV[6])

local PROMOTE_MAX = math.max(100, math.min(max_jobs, 1000))
local RESCUE_MAX = 1000     -- jobs
local EXPIRED_MAX = 10000   -- jobs passed over in one call
local BATCH_BYTES = 16000000
local STEP = 16             -- entries read at once; one by one where jobs are large
local STEP_BYTES = 1000000
local TIDY_MS = 60000
local FIELDS = {'kind', 'args', 'meta', 'blob', 'tenant', 'ref', 'attempt', 'max_attempts', 'created_us', 'timeout_ms', 'stale_ms'}

local function promote()
  local due = redis.call('ZRANGEBYSCORE', queue .. ':later', '-inf', now_ms, 'LIMIT', 0, PROMOTE_MAX)
  local priorities = {}
  for i, id in ipairs(due) do
    priorities[i] = lane_of(id) or ''
  end
  for i, id in ipairs(due) do
    redis.call('ZREM', queue .. ':later', id)
    if priorities[i] ~= '' then
      append(id, priorities[i])
    end
  end
end

-- A job whose worker was lost: back at once the first time, with backoff later, a dead letter beyond the limit, but only while the fleet is
-- healthy. In a stall the attempt is given back, and the count of losses stays one below the limit. As sql/internal/job_rescue.sql.
local function lose(id, priority, healthy, job)
  local before = number_of(job[1], 0)
  local most = setting('poison_limit', 3, 1, 32000)
  local lost = healthy and before + 1 or math.max(before, math.min(before + 1, most - 1))
  redis.call('HSET', job_key(id), 'lost', lost)
  if healthy and lost > most then
    bury(id, 'poison', 'its worker was lost ' .. lost .. ' times in a row')
    return
  end
  redis.call('HSET', job_key(id), 'attempt', number_of(job[2], 1) + 1)
  if not healthy then
    redis.call('HSET', job_key(id), 'max_attempts', number_of(job[3], 1) + 1)
  end
  if before == 0 then
    append(id, priority)
  else
    put_off(id, now_ms + backoff(math.max(lost - 1, 1), random))
  end
end

local function rescue()
  local left = RESCUE_MAX
  local ended = redis.call('ZRANGEBYSCORE', queue .. ':leases', '-inf', '(' .. now_ms, 'LIMIT', 0, 100)
  for _, lease in ipairs(ended) do
    local ids, entries, priority = held(lease, {})
    if not ids then
      redis.call('ZREM', queue .. ':leases', lease)
    else
      for i = #ids, left + 1, -1 do -- the rest stays open, for the next time
        ids[i], entries[i] = nil, nil
      end
      local finished = number_of(redis.call('HGET', queue, 'finished_us'), 0)
      local healthy = finished > number_of(redis.call('HGET', lease_key(lease), 'claimed_us'), 0)
      local jobs = {}
      for i, id in ipairs(ids) do
        jobs[i] = redis.call('HMGET', job_key(id), 'lost', 'attempt', 'max_attempts')
      end
      check_lane(priority)
      let_go(lease, ids, entries, priority, 'lost')
      for i, id in ipairs(ids) do
        lose(id, priority, healthy, jobs[i])
      end
      left = left - #ids
    end
    if left <= 0 then
      return
    end
  end
end

-- Names of workers would pile up in the group.
local function tidy()
  if now_ms - number_of(redis.call('HGET', queue, 'tidied_ms'), 0) < TIDY_MS then
    return
  end
  redis.call('HSET', queue, 'tidied_ms', now_ms)
  local idle_ms = setting('consumer_idle_ms', 3600000, 1, 1e12)
  for _, priority in ipairs(redis.call('ZRANGE', queue .. ':lanes', 0, -1)) do
    for _, face in ipairs(redis.call('XINFO', 'CONSUMERS', lane_key(priority), group)) do
      local of = {}
      for i = 1, #face, 2 do
        of[face[i]] = face[i + 1]
      end
      if of.pending == 0 and of.idle > idle_ms then
        redis.call('XGROUP', 'DELCONSUMER', lane_key(priority), group, of.name)
      end
    end
  end
end

local passed_over = 0

-- A job that is gone, or that nobody took in time.
local function drop(lane, entry, id)
  redis.call('XACK', lane, group, entry)
  redis.call('XDEL', lane, entry)
  redis.call('DEL', job_key(id))
  passed_over = passed_over + 1
end

local function size(job)
  local sum = 0
  for _, part in ipairs({1, 2, 3, 4}) do
    sum = sum + (job[part] and #job[part] or 0)
  end
  return sum
end

-- Reads jobs of a priority: rows for the answer, and what the lease keeps of them.
local function take(priority)
  local lane = lane_key(priority)
  local rows, marks, bytes = {}, {}, 0
  while #rows < max_jobs and bytes < BATCH_BYTES and passed_over < EXPIRED_MAX do
    local step = bytes > STEP_BYTES and 1 or math.min(STEP, max_jobs - #rows)
    local read = redis.call('XREADGROUP', 'GROUP', group, worker, 'COUNT', step, 'STREAMS', lane, '>')
    if not read or not read[1] then
      break
    end
    for _, entry in ipairs(read[1][2]) do
      local id = entry[2][2]
      local job = redis.call('HMGET', job_key(id), unpack(FIELDS))
      if not job[1] or (job[11] and tonumber(job[11]) <= now_ms) then
        drop(lane, entry[1], id)
      else
        local state = with_state and redis.call('HGET', job_key(id), 'state')
        bytes = bytes + size(job) + (state and #state or 0)
        rows[#rows + 1] = {id, job[7], job[8], job[1], job[2], job[3], state, job[4], job[5], job[6], job[9], job[10]}
        marks[#marks + 1] = id
        marks[#marks + 1] = entry[1]
      end
    end
  end
  return rows, marks
end

check_keys()
promote()
rescue()

if lease_ms == 0 then
  lease_ms = setting('lease_ms', 30000, 1, 1e13)
end
for _, priority in ipairs(redis.call('ZRANGE', queue .. ':lanes', 0, -1)) do
  local rows, marks = take(priority)
  if #rows > 0 then
    local lease = redis.call('HINCRBY', queue, 'leases', 1) .. '.' .. token
    local until_us = now_us + lease_ms * 1000
    redis.call('HSET', lease_key(lease), 'worker', worker, 'claimed_us', whole(now_us), 'ms', whole(lease_ms), 'priority', priority, 'open', #rows)
    in_parts(marks, function(...)
      redis.call('HSET', lease_key(lease), ...)
    end)
    redis.call('ZADD', queue .. ':leases', whole(math.floor(until_us / 1000)), lease)
    tidy()
    return {lease, whole(until_us), whole(now_us), priority, rows}
  end
end
return {}
