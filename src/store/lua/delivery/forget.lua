-- SPDX-License-Identifier: PostgreSQL
-- Outcomes of a relay that lives no more are written. ARGV: its epoch, the outcomes; none: there were none left, and it is forgotten.
local epoch = ARGV[1]

for i = 2, #ARGV do
  redis.call('XDEL', outcomes_key(epoch), ARGV[i])
end
if #ARGV == 1 then
  redis.call('DEL', outcomes_key(epoch))
  redis.call('HDEL', base .. ':relays', epoch)
end
return #ARGV - 1
