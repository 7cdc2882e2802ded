-- SPDX-License-Identifier: PostgreSQL
-- A worker asks whether the relay of entries that it has read still lives. ARGV: the epoch, the entries. Answers with the time after which entries
-- are taken from a worker that is silent; or with 0: nobody keeps their leases alive, and the entries are gone.
local reclaim_ms = redis.call('GET', live_key(ARGV[1]))

if reclaim_ms then
  return tonumber(reclaim_ms)
end
for i = 2, #ARGV do
  end_entry(ARGV[i])
end
return 0
