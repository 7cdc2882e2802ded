-- SPDX-License-Identifier: PostgreSQL
-- Spends events of a key if its limit allows them: a sliding window, exact. See sql/internal/rate_limit_at.sql.
-- KEYS: the spendings, a sorted set by time in microseconds; a member is the running total and what was spent: "0000000000000007:2".
-- ARGV: max_events, the period in microseconds, cost, how long spendings are kept in microseconds.
-- Returns whether it is allowed (1, 0), what is left, and when it resets in microseconds, "0" for never. A call that is refused writes nothing.
local spent = KEYS[1]
local max_events, per, cost, keep = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local clock = redis.call('time')
local now = clock[1] * 1000000 + clock[2]

local function whole(number)
  return string.format('%.0f', number)
end

local function read(rows)
  if #rows == 0 then
    return nil
  end
  local total, n = string.match(rows[1], '^(%d+):(%d+)$')
  return {at = tonumber(rows[2]), total = tonumber(total), n = tonumber(n)}
end

local function newest()
  return read(redis.call('zrevrange', spent, 0, 0, 'withscores'))
end

local last = newest()
if last and last.at > now + per then
  -- made before the clock was put back: forgotten, or the key would stand until then
  redis.call('zremrangebyscore', spent, '(' .. whole(now), '+inf')
  last = newest()
end
local at = last and math.max(now, last.at) or now
local first = last and read(redis.call('zrangebyscore', spent, '(' .. whole(at - per), '+inf', 'withscores', 'limit', 0, 1))
local base = first and first.total - first.n or 0
local used = first and last.total - base or 0

if (cost == 0 and used < max_events) or (cost > 0 and used + cost <= max_events) then
  if cost > 0 then
    local total = (last and last.total or 0) + cost
    redis.call('zadd', spent, whole(at), string.format('%016.0f:%.0f', total, cost))
    redis.call('zremrangebyscore', spent, '-inf', whole(at - keep))
    redis.call('pexpire', spent, whole(math.ceil((at - now + keep) / 1000)))
  end
  return {1, whole(max_events - used - cost), whole((first and first.at or at) + per)}
end

local wanted = math.max(cost, 1)
local resets = 0
if wanted <= max_events then
  -- no more than a thousand spendings are looked at; beyond them it is the end of the window
  local rows = redis.call('zrangebyscore', spent, whole(first.at), '+inf', 'withscores', 'limit', 0, 1000)
  resets = last.at + per
  for i = 1, #rows, 2 do
    if tonumber(string.match(rows[i], '^%d+')) - base >= used + wanted - max_events then
      resets = tonumber(rows[i + 1]) + per
      break
    end
  end
end
return {0, whole(math.max(max_events - used, 0)), whole(resets)}
