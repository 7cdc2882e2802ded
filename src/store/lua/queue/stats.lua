-- SPDX-License-Identifier: PostgreSQL
-- Counts the jobs of a queue at the same cost for any number of them. Returns: available, running, scheduled (retries too), dead. Writes nothing.

local entries, running = 0, 0
for _, priority in ipairs(redis.call('ZRANGE', queue .. ':lanes', 0, -1)) do
  entries = entries + redis.call('XLEN', lane_key(priority))
  for _, face in ipairs(redis.call('XINFO', 'GROUPS', lane_key(priority))) do
    for i = 1, #face, 2 do
      if face[i] == 'pending' then
        running = running + face[i + 1]
      end
    end
  end
end
return {entries - running, running, redis.call('ZCARD', queue .. ':later'), redis.call('ZCARD', queue .. ':dead')}
