-- SPDX-License-Identifier: PostgreSQL
-- Removes dead letters of a queue, the oldest first, some at a time. ARGV: their age in ms at least (0: any), and the time in ms at which the caller began
-- ('': now). Returns: how many, 1 where there may be more, and that time. Refuses with MRNEW a queue that is not there.

local REMOVE_MAX = 1000

if redis.call('HEXISTS', queue, 'no') == 0 then
  return redis.status_reply('MRNEW')
end
local until_ms = ARGV[2] == '' and whole(now_ms) or ARGV[2]
local age = tonumber(ARGV[1])
local most = age > 0 and '(' .. whole(tonumber(until_ms) - age) or until_ms
local letters = redis.call('ZRANGEBYSCORE', queue .. ':dead', '-inf', most, 'LIMIT', 0, REMOVE_MAX)
for _, letter in ipairs(letters) do
  redis.call('ZREM', queue .. ':dead', letter)
  redis.call('DEL', job_key(letter))
end
return {#letters, #letters == REMOVE_MAX and 1 or 0, until_ms}
