-- SPDX-License-Identifier: PostgreSQL
-- Gives back the lock of a name. KEYS: the lock. ARGV: the owner. Returns 1, or 0 when the owner has not got it.
local held = redis.call('get', KEYS[1])

if held and string.match(held, '^%d+:(.*)$') == ARGV[1] then
  return redis.call('del', KEYS[1])
end
return 0
