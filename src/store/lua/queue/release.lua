-- SPDX-License-Identifier: PostgreSQL
-- Gives jobs of a lease back; the attempt is not counted. ARGV: the lease, and ids (none: all that are open). Returns how many.

local wanted = {}
for i = 2, #ARGV do
  wanted[#wanted + 1] = ARGV[i]
end
local ids, entries, priority = held(ARGV[1], wanted)
if not ids then
  return entries
end
check_keys()
let_go(ARGV[1], ids, entries, priority, 'back')
for _, id in ipairs(ids) do
  append(id, priority)
end
return #ids
