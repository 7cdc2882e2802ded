-- SPDX-License-Identifier: PostgreSQL
-- Enqueues jobs, all or none. ARGV: the queue's number, '' where it is not known; how many jobs; and for each the number of its fields and
-- the fields, name and value: kind, args, meta, state, blob, tenant, ref, timeout_ms, priority, max_attempts; run_at_ms or delay_ms; expires_ms.
-- Returns their ids. Refuses with MRNEW where the queue has no number yet.

local WEIGHED = {args = true, meta = true, blob = true}
local HIDDEN = {priority = true, max_attempts = true, run_at_ms = true, delay_ms = true, expires_ms = true}

local number = redis.call('HGET', queue, 'no')
if not number and ARGV[1] == '' then
  return redis.status_reply('MRNEW')
end

-- Reads the job that begins at an argument: what is kept, where it goes, when it is due; and where the next one begins.
local function read_job(at, most)
  local given, fields, bytes = {}, {}, 0
  local stop = at + 2 * tonumber(ARGV[at])
  for k = at + 1, stop, 2 do
    given[ARGV[k]] = ARGV[k + 1]
    if not HIDDEN[ARGV[k]] then
      fields[#fields + 1] = ARGV[k]
      fields[#fields + 1] = ARGV[k + 1]
    end
    bytes = bytes + (WEIGHED[ARGV[k]] and #ARGV[k + 1] or 0)
  end
  local due_ms = number_of(given.run_at_ms) or now_ms + number_of(given.delay_ms, 0)
  if given.expires_ms then
    fields[#fields + 1] = 'stale_ms'
    fields[#fields + 1] = whole(due_ms + tonumber(given.expires_ms))
  end
  fields[#fields + 1] = 'bytes'
  fields[#fields + 1] = bytes
  check_lane(given.priority)
  return {fields = fields, priority = given.priority, max_attempts = given.max_attempts or most, due_ms = due_ms}, stop + 1
end

local count = tonumber(ARGV[2])
local most = setting('max_attempts', 3, 1, 32000)
local jobs = {}
local at = 3
check_keys()
for i = 1, count do
  jobs[i], at = read_job(at, most)
end

local last = redis.call('HINCRBY', queue, 'jobs', count)
if not number then
  number = ARGV[1]
  redis.call('HSET', queue, 'no', number)
end
local ids = {}
for i, job in ipairs(jobs) do
  local id = number .. string.format('%012.0f', last - count + i)
  redis.call('HSET', job_key(id), 'attempt', 1, 'lost', 0, 'created_us', whole(now_us), 'priority', job.priority,
             'max_attempts', job.max_attempts, unpack(job.fields))
  if job.due_ms > now_ms then
    put_off(id, job.due_ms)
  else
    append(id, job.priority)
  end
  ids[i] = id
end
return ids
