-- SPDX-License-Identifier: PostgreSQL
-- What a relay has in the stream. ARGV: its epoch, where to begin, how many entries to look at. Answers with where to go on ('': that was the end),
-- the last number of its outcomes, and entry, job and lease of each of its own.
local epoch, found, last = ARGV[1], {}, ''
local entries = redis.call('XRANGE', jobs, ARGV[2], '+', 'COUNT', ARGV[3])

local function last_outcome()
  if redis.call('EXISTS', outcomes_key(epoch)) == 1 then
    local info = redis.call('XINFO', 'STREAM', outcomes_key(epoch))
    for i = 1, #info, 2 do
      if info[i] == 'last-generated-id' then
        return info[i + 1]
      end
    end
  end
  return '0-0'
end

for _, entry in ipairs(entries) do
  local fields = {}
  for i = 1, #entry[2], 2 do
    fields[entry[2][i]] = entry[2][i + 1]
  end
  if fields.relay == epoch then
    found[#found + 1] = entry[1]
    found[#found + 1] = fields.id
    found[#found + 1] = fields.lease
  end
end
if #entries == tonumber(ARGV[3]) then
  last = '(' .. entries[#entries][1]
end
return {last, last_outcome(), found}
