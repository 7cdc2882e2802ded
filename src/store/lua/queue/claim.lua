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
local RESCUE_MAX = 1000     -- jobs; from then on no other lease. One has 10,000 at most
local EXPIRED_MAX = 10000   -- jobs passed over in one call
local BATCH_BYTES = 16000000
local STEP = 100            -- entries looked at together
local TIDY_MS = 60000
-- What is read of each job that comes up, and what only of one that fits into the batch.
local LIGHT = {'kind', 'attempt', 'max_attempts', 'tenant', 'ref', 'created_us', 'timeout_ms', 'stale_ms', 'bytes'}
local HEAVY = with_state and {'args', 'meta', 'blob', 'state'} or {'args', 'meta', 'blob'}

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

-- Leases are rescued as a whole: of one that has some jobs left the token would be good, while others work on the rest.
local function rescue()
  local left = RESCUE_MAX
  local ended = redis.call('ZRANGEBYSCORE', queue .. ':leases', '-inf', '(' .. now_ms, 'LIMIT', 0, 100)
  for _, lease in ipairs(ended) do
    local ids, entries, priority = held(lease, {})
    if not ids then
      redis.call('ZREM', queue .. ':leases', lease)
    else
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
    local faces = redis.pcall('XINFO', 'CONSUMERS', lane_key(priority), group) -- an error is for whoever claims from that lane
    for _, face in ipairs(faces) do
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

-- The id behind the last entry of a lane that was given to anybody.
local function next_entry(lane)
  for _, face in ipairs(redis.call('XINFO', 'GROUPS', lane)) do
    local of = {}
    for i = 1, #face, 2 do
      of[face[i]] = face[i + 1]
    end
    if of.name == group then
      return of['last-delivered-id']
    end
  end
  error('the stream ' .. lane .. ' has no group ' .. group)
end

-- The smallest id behind one. (Redis knows `(` for that since 6.2.)
local function behind(entry)
  local ms, sequence = string.match(entry, '^(%d+)-(%d+)$')
  return ms .. '-' .. whole(tonumber(sequence) + 1)
end

-- What a job weighs in an answer. Its args, meta and blob were weighed when it was enqueued; its state changes.
local function weigh(id, bytes)
  local sum = number_of(bytes)
  if not sum then
    sum = redis.call('HSTRLEN', job_key(id), 'args') + redis.call('HSTRLEN', job_key(id), 'meta') + redis.call('HSTRLEN', job_key(id), 'blob')
  end
  return sum + (with_state and redis.call('HSTRLEN', job_key(id), 'state') or 0)
end

local function row(id, light)
  local heavy = redis.call('HMGET', job_key(id), unpack(HEAVY))
  return {id, number_of(light[2], 1), number_of(light[3], 1), light[1], heavy[1], heavy[2], heavy[4] or false, heavy[3], light[4], light[5],
          light[6], light[7]}
end

local passed_over = 0

-- Looks at what comes next in a lane, and writes nothing: rows for the answer, what the lease keeps of them, the jobs that are gone or that nobody took
-- in time, and how many entries that are. A job is read when it is known to fit; the first one does.
local function look(lane)
  local rows, marks, stale, seen, bytes = {}, {}, {}, 0, 0
  local from = next_entry(lane)
  while #rows < max_jobs and passed_over < EXPIRED_MAX do
    local entries = redis.call('XRANGE', lane, behind(from), '+', 'COUNT', math.min(STEP, max_jobs - #rows))
    for _, entry in ipairs(entries) do
      local id = entry[2][2]
      local light = redis.call('HMGET', job_key(id), unpack(LIGHT))
      if not light[1] or number_of(light[8], now_ms + 1) <= now_ms then
        stale[#stale + 1] = {entry[1], id}
        passed_over = passed_over + 1
      else
        bytes = bytes + weigh(id, light[9])
        if #rows > 0 and bytes > BATCH_BYTES then
          return rows, marks, stale, seen
        end
        rows[#rows + 1] = row(id, light)
        marks[#marks + 1] = id
        marks[#marks + 1] = entry[1]
      end
      seen = seen + 1
      from = entry[1]
    end
    if #entries == 0 then
      break
    end
  end
  return rows, marks, stale, seen
end

-- Takes jobs of a priority: rows for the answer, and what the lease keeps of them.
local function take(priority)
  local lane = lane_key(priority)
  local rows, marks, stale, seen = look(lane)
  if seen > 0 then
    redis.call('XREADGROUP', 'GROUP', group, worker, 'COUNT', seen, 'STREAMS', lane, '>')
  end
  for _, one in ipairs(stale) do
    redis.call('XACK', lane, group, one[1])
    redis.call('XDEL', lane, one[1])
    redis.call('DEL', job_key(one[2]))
  end
  return rows, marks
end

check_keys()
promote()
rescue()

if lease_ms == 0 then
  lease_ms = setting('lease_ms', 30000, 1, 1e13)
end
local number = number_of(redis.call('HGET', queue, 'leases'), 0) + 1
for _, priority in ipairs(redis.call('ZRANGE', queue .. ':lanes', 0, -1)) do
  local rows, marks = take(priority)
  if #rows > 0 then
    local lease = whole(number) .. '.' .. token
    redis.call('HSET', queue, 'leases', whole(number))
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
