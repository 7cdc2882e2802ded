-- SPDX-License-Identifier: PostgreSQL
-- How many of some keys there are, and the bytes of memory that they take. KEYS: entries of the cache.
local count, bytes = 0, 0

for i = 1, #KEYS do
  local size = redis.call('memory', 'usage', KEYS[i])
  if size then
    count = count + 1
    bytes = bytes + size
  end
end
return {count, bytes}
