-- SPDX-License-Identifier: PostgreSQL
-- A worker says what became of entries. ARGV: the epoch, the consumer, and for each the entry, the job's id, its lease, a word and the members that go
-- with it. The word progress is a report, and leaves the entry as it is. Answers for each: 1 noted, 0 the entry is not the consumer's.
local epoch, consumer = ARGV[1], ARGV[2]
local answer = {}

for i = 3, #ARGV, 5 do
  local entry, word = ARGV[i], ARGV[i + 3]
  if not is_pending_for(entry, consumer) then
    answer[#answer + 1] = 0
  else
    redis.call('XADD', outcomes_key(epoch), '*', 'id', ARGV[i + 1], 'lease', ARGV[i + 2], 'word', word, 'members', ARGV[i + 4])
    if word ~= 'progress' then
      end_entry(entry)
    end
    answer[#answer + 1] = 1
  end
end
redis.call('PEXPIRE', outcomes_key(epoch), KEEP_MS)
return answer
