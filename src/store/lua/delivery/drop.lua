-- SPDX-License-Identifier: PostgreSQL
-- A relay takes entries back, whoever has them. ARGV: the entries.
for i = 1, #ARGV do
  end_entry(ARGV[i])
  redis.call('SREM', base .. ':cancelled', ARGV[i])
end
return #ARGV
