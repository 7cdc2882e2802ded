-- SPDX-License-Identifier: PostgreSQL
-- Forgets workers that have nothing and were silent for long. ARGV: how long. Answers with how many.
local swept = 0

for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', jobs, group)) do
  local fields = {}
  for i = 1, #info, 2 do
    fields[info[i]] = info[i + 1]
  end
  if fields.pending == 0 and fields.idle > tonumber(ARGV[1]) then
    redis.call('XGROUP', 'DELCONSUMER', jobs, group, fields.name)
    swept = swept + 1
  end
end
return swept
