-- SPDX-License-Identifier: PostgreSQL
-- Gives a queue its number, which its jobs' ids begin with. KEYS[1]: mr:queues, a hash of both directions. ARGV: the queue's name.
-- Returns the number.

local NUMBER_MAX = 9000000 -- an id is the number times 10^12 and a count, and has 63 bits

local number = redis.call('HGET', KEYS[1], 'queue:' .. ARGV[1])
if number then
  return number
end
if tonumber(redis.call('HGET', KEYS[1], 'last') or 0) >= NUMBER_MAX then
  return redis.status_reply('MRQUEUES')
end
number = redis.call('HINCRBY', KEYS[1], 'last', 1)
redis.call('HSET', KEYS[1], 'queue:' .. ARGV[1], number, 'number:' .. number, ARGV[1])
return tostring(number)
