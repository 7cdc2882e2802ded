-- SPDX-License-Identifier: PostgreSQL
-- Dead letters of a queue, those that died last first. ARGV: a kind or '', how many at most. Looks at LOOK_MAX of them. Writes nothing.
-- Refuses with MRNEW a queue that is not there.

local LOOK_MAX = 20000
local PAGE = 200
local FIELDS = {'kind', 'cause', 'failure', 'attempt', 'max_attempts', 'lost', 'tenant', 'ref', 'created_us', 'died_us', 'args', 'meta'}

if redis.call('HEXISTS', queue, 'no') == 0 then
  return redis.status_reply('MRNEW')
end
local rows = {}
for from = 0, LOOK_MAX - 1, PAGE do
  local ids = redis.call('ZREVRANGE', queue .. ':dead', from, from + PAGE - 1)
  for _, id in ipairs(ids) do
    local job = redis.call('HMGET', job_key(id), unpack(FIELDS))
    if job[1] and (ARGV[1] == '' or job[1] == ARGV[1]) and #rows < tonumber(ARGV[2]) then
      table.insert(job, 1, id)
      rows[#rows + 1] = job
    end
  end
  if #ids < PAGE or #rows == tonumber(ARGV[2]) then
    break
  end
end
return rows
