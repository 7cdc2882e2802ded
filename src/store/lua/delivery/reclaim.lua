-- SPDX-License-Identifier: PostgreSQL
-- Takes entries from workers that were silent for too long: their relays hear that they are lost, and the entries end. ARGV: how long, where to begin,
-- how many to look at. Answers with where to go on (0-0: that was the end) and how many it took.
local claimed = redis.call('XAUTOCLAIM', jobs, group, 'relay', ARGV[1], ARGV[2], 'COUNT', ARGV[3])
local taken = 0

for _, entry in ipairs(claimed[2]) do
  if entry and entry[2] then
    local fields = {}
    for i = 1, #entry[2], 2 do
      fields[entry[2][i]] = entry[2][i + 1]
    end
    if fields.relay and redis.call('EXISTS', live_key(fields.relay)) == 1 then
      redis.call('XADD', outcomes_key(fields.relay), '*', 'id', fields.id, 'lease', fields.lease, 'word', 'lost', 'members', '')
    end
    end_entry(entry[1])
    taken = taken + 1
  end
end
return {claimed[1], taken}
