-- SPDX-License-Identifier: PostgreSQL
-- A relay says that it lives, makes what is missing, and looks. ARGV: its epoch, how long it is believed, after what time it takes entries from a worker.
-- Answers with: whether it was not known (Redis has lost its memory, or the relay was silent for too long), whether the group was made, the length of
-- the stream, how many of it are pending, and the epochs of relays that live no more.
local epoch, alive_ms, reclaim_ms = ARGV[1], ARGV[2], ARGV[3]
local unknown, made, dead = 0, 0, {}

local function has_group()
  if redis.call('EXISTS', jobs) == 0 then
    return false
  end
  for _, info in ipairs(redis.call('XINFO', 'GROUPS', jobs)) do
    if info[2] == group then
      return true
    end
  end
  return false
end

if not has_group() then
  redis.call('XGROUP', 'CREATE', jobs, group, '0', 'MKSTREAM')
  made = 1
end
if redis.call('PEXPIRE', live_key(epoch), alive_ms) == 0 then
  redis.call('SET', live_key(epoch), reclaim_ms, 'PX', alive_ms)
  unknown = 1
end
if redis.call('HEXISTS', base .. ':relays', epoch) == 0 then
  redis.call('HSET', base .. ':relays', epoch, redis.call('TIME')[1])
end
redis.call('PEXPIRE', outcomes_key(epoch), KEEP_MS)
for _, other in ipairs(redis.call('HKEYS', base .. ':relays')) do
  if redis.call('EXISTS', live_key(other)) == 0 then
    dead[#dead + 1] = other
  end
end
return {unknown, made, redis.call('XLEN', jobs), redis.call('XPENDING', jobs, group)[1], dead}
