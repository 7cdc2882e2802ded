-- SPDX-License-Identifier: PostgreSQL
-- Takes or renews the lock of a name for an owner. See sql/internal/lock_lease_at.sql.
-- KEYS: the lock, "FENCE:OWNER" with its end as the key's; the last fencing number.
-- ARGV: the owner, the time to live in milliseconds.
-- Returns the fencing number, nil when another owner has it. A number is larger than the last one and not below the server's time in microseconds, so
-- that numbers go on rising when Redis has lost what it knew.
local lock, last = KEYS[1], KEYS[2]
local owner, ttl_ms = ARGV[1], ARGV[2]
local held = redis.call('get', lock)
local fence

if held then
  local number, holder = string.match(held, '^(%d+):(.*)$')
  if not number then
    return redis.error_reply('WRONGTYPE the key of a lock holds something else')
  elseif holder ~= owner then
    return nil
  end
  fence = number
else
  local clock = redis.call('time')
  fence = string.format('%.0f', math.max(tonumber(redis.call('get', last) or '0') + 1, clock[1] * 1000000 + clock[2]))
  redis.call('set', last, fence)
end
redis.call('set', lock, fence .. ':' .. owner, 'px', ttl_ms)
return fence
