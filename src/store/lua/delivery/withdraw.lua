-- SPDX-License-Identifier: PostgreSQL
-- A relay takes back what no worker has. ARGV: the entries. Answers for each: 1 taken back, 0 a worker has it, or it has ended.
local answer = {}

for i = 1, #ARGV do
  if #redis.call('XPENDING', jobs, group, ARGV[i], ARGV[i], 1) > 0 then
    answer[i] = 0
  else
    answer[i] = redis.call('XDEL', jobs, ARGV[i])
  end
end
return answer
