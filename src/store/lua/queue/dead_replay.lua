-- SPDX-License-Identifier: PostgreSQL
-- Enqueues dead letters again, with the same id and attempt 1. ARGV: an id; or '', a kind or '', how many at most, how many of the oldest
-- to pass over, and the time in ms at which the caller began ('': now), so that one that dies anew is not replayed a second time.
-- Returns: how many, how many more were passed over, 1 where there may be more, and that time. Refuses with MRNEW a queue that is not there.

local LOOK_MAX = 1000

local id, kind, most, from, until_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

local function replay(letter, priority)
  redis.call('ZREM', queue .. ':dead', letter)
  redis.call('HDEL', job_key(letter), 'cause', 'failure', 'died_us', 'stale_ms')
  redis.call('HSET', job_key(letter), 'attempt', 1, 'lost', 0)
  append(letter, priority)
end

if redis.call('HEXISTS', queue, 'no') == 0 then
  return redis.status_reply('MRNEW')
end
check_keys()
if id ~= '' then
  local priority = redis.call('ZSCORE', queue .. ':dead', id) and lane_of(id)
  if not priority then
    return {0, 0, 0, now_ms}
  end
  replay(id, priority)
  return {1, 0, 0, now_ms}
end
until_ms = until_ms == '' and whole(now_ms) or until_ms
local letters = redis.call('ZRANGEBYSCORE', queue .. ':dead', '-inf', until_ms, 'LIMIT', from, LOOK_MAX)
local wanted, priorities, passed = {}, {}, 0
for _, letter in ipairs(letters) do
  if #wanted == most then
    break
  end
  local priority = (kind == '' or redis.call('HGET', job_key(letter), 'kind') == kind) and lane_of(letter)
  if priority then
    wanted[#wanted + 1] = letter
    priorities[#wanted] = priority
  else
    passed = passed + 1
  end
end
for i, letter in ipairs(wanted) do
  replay(letter, priorities[i])
end
local done = #wanted
return {done, passed, #letters == LOOK_MAX and done < most and 1 or 0, until_ms}
