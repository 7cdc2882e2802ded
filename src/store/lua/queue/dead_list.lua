-- SPDX-License-Identifier: PostgreSQL
-- Dead letters of a queue, those that died last first. ARGV: a kind or '', how many at most. Looks at LOOK_MAX of them, and brings LIST_BYTES
-- of args, meta and errors, or one letter. Writes nothing. Returns 1 where all were looked at, and the letters.
-- Refuses with MRNEW a queue that is not there.

local LOOK_MAX = 20000
local LIST_BYTES = 16000000
local PAGE = 200
local FIELDS = {'kind', 'cause', 'failure', 'attempt', 'max_attempts', 'lost', 'tenant', 'ref', 'created_us', 'died_us', 'args', 'meta'}

local kind, most = ARGV[1], tonumber(ARGV[2])
local rows, bytes = {}, 0

-- Whether there is room for more behind this letter. What does not fit, or has another kind, is not read.
local function look(id)
  local its = redis.call('HGET', job_key(id), 'kind')
  if not its or (kind ~= '' and its ~= kind) then
    return true
  end
  for _, part in ipairs({'args', 'meta', 'failure'}) do
    bytes = bytes + redis.call('HSTRLEN', job_key(id), part)
  end
  if #rows > 0 and bytes > LIST_BYTES then
    return false
  end
  local letter = redis.call('HMGET', job_key(id), unpack(FIELDS))
  table.insert(letter, 1, id)
  rows[#rows + 1] = letter
  return #rows < most
end

if redis.call('HEXISTS', queue, 'no') == 0 then
  return redis.status_reply('MRNEW')
end
for from = 0, LOOK_MAX - 1, PAGE do
  local ids = redis.call('ZREVRANGE', queue .. ':dead', from, from + PAGE - 1)
  for _, id in ipairs(ids) do
    if not look(id) then
      return {0, rows}
    end
  end
  if #ids < PAGE then
    return {1, rows}
  end
end
return {0, rows}
