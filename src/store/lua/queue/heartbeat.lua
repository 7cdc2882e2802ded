-- SPDX-License-Identifier: PostgreSQL
-- Extends a lease, one that has ended and was not rescued too. ARGV: the lease, by how many ms (0: by as much as it was taken for). Returns its end in
-- microseconds.

local ms = tonumber(redis.call('HGET', lease_key(ARGV[1]), 'ms') or '')
if not ms then
  return redis.status_reply('MRLOST')
end
if tonumber(ARGV[2]) > 0 then
  ms = tonumber(ARGV[2])
end
local until_us = now_us + ms * 1000
redis.call('ZREM', queue .. ':leases', ARGV[1])
redis.call('ZADD', queue .. ':leases', whole(math.floor(until_us / 1000)), ARGV[1])
return whole(until_us)
