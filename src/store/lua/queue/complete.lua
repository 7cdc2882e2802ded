-- SPDX-License-Identifier: PostgreSQL
-- Completes jobs of leases, all or none: they are gone afterwards. ARGV: how many leases, the leases, and where it is one: ids (none: all that
-- are open). Returns how many. Refuses with MRLOST and the place of the first lease that is lost.

local leases = tonumber(ARGV[1])
local wanted, all, seen = {}, {}, {}
for i = leases + 2, #ARGV do
  wanted[#wanted + 1] = ARGV[i]
end
for i = 1, leases do
  local lease = ARGV[1 + i]
  local ids, entries, priority = held(lease, wanted)
  if seen[lease] or not ids and entries.ok == 'MRLOST' then
    return redis.status_reply('MRLOST ' .. i)
  elseif not ids then
    return entries
  end
  seen[lease] = true
  all[i] = {lease, ids, entries, priority}
end
check_keys()
local done = 0
for _, one in ipairs(all) do
  let_go(one[1], one[2], one[3], one[4], 'worked')
  local keys = {}
  for i, id in ipairs(one[2]) do
    keys[i] = job_key(id)
  end
  in_parts(keys, function(...)
    redis.call('DEL', ...)
  end)
  done = done + #keys
end
return done
