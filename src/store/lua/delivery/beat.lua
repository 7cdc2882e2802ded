-- SPDX-License-Identifier: PostgreSQL
-- A worker says that it still has entries. ARGV: the consumer, the entries. Answers for each: 1 it has, 2 it has and the job was cancelled, 0 it has not.
local consumer = ARGV[1]
local answer = {}

for i = 2, #ARGV do
  if not is_pending_for(ARGV[i], consumer) then
    answer[#answer + 1] = 0
  else
    redis.call('XCLAIM', jobs, group, consumer, 0, ARGV[i], 'JUSTID')
    answer[#answer + 1] = 1 + redis.call('SISMEMBER', base .. ':cancelled', ARGV[i])
  end
end
return answer
