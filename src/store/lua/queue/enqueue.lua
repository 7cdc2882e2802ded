-- SPDX-License-Identifier: PostgreSQL
-- Enqueues jobs, all or none. ARGV: the queue's number, '' where it is not known; how many jobs; and for each the number of its fields and
-- the fields, name and value: kind, args, meta, state, blob, tenant, ref, timeout_ms, priority, max_attempts; run_at_ms or delay_ms; expires_ms.
-- Returns their ids. Refuses with MRNEW where the queue has no number yet.

local HIDDEN = {priority = true, max_attempts = true, run_at_ms = true, delay_ms = true, expires_ms = true}

local number = redis.call('HGET', queue, 'no')
if not number and ARGV[1] == '' then
  return redis.status_reply('MRNEW')
elseif not number then
  number = ARGV[1]
  redis.call('HSET', queue, 'no', number)
end

local count = tonumber(ARGV[2])
local most = setting('max_attempts', 3, 1, 32000)
local last = redis.call('HINCRBY', queue, 'jobs', count)
local ids = {}
local at = 3
for i = 1, count do
  local id = number .. string.format('%012.0f', last - count + i)
  local n = tonumber(ARGV[at])
  local given = {}
  local fields = {}
  for k = at + 1, at + 2 * n, 2 do
    given[ARGV[k]] = ARGV[k + 1]
    if not HIDDEN[ARGV[k]] then
      fields[#fields + 1] = ARGV[k]
      fields[#fields + 1] = ARGV[k + 1]
    end
  end
  at = at + 1 + 2 * n
  local due_ms = tonumber(given.run_at_ms or '') or now_ms + (tonumber(given.delay_ms or '') or 0)
  if given.expires_ms then
    fields[#fields + 1] = 'stale_ms'
    fields[#fields + 1] = whole(due_ms + tonumber(given.expires_ms))
  end
  redis.call('HSET', job_key(id), 'attempt', 1, 'lost', 0, 'created_us', whole(now_us), 'priority', given.priority,
             'max_attempts', given.max_attempts or most, unpack(fields))
  if due_ms > now_ms then
    put_off(id, due_ms)
  else
    append(id, given.priority)
  end
  ids[i] = id
end
return ids
