-- Keeps what is spent of budgets, and what is reserved of them, in billionths of a dollar. KEYS: for each budget a hash (s: spent, r:
-- reserved, by id: one reservation) and a sorted set of ids by the time until which they count. ARGV: reserve, settle or owed; the id;
-- for how many milliseconds it counts; then for each budget its room, the amount, when its keys may go (Unix milliseconds), and what is
-- spent at least, as the caller knows: what is less was lost, as by a failover, and counts again. Settle counts an amount in place of
-- its reservation, also of one that nobody settled in time (x before its id), and does nothing where there is none; owed counts it in
-- any case, once (o before its id). So both may be said twice. Returns 1 or 0, and of each budget what was spent and reserved before,
-- what of it was spent, and what had been lost. The time is that of Redis.
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local op, id, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local taken, fits = {}, 1
local function drop(hash, set, id)
  local n = redis.call('HGET', hash, id)
  redis.call('ZREM', set, id)
  if not n then return false end
  redis.call('HDEL', hash, id)
  redis.call('HINCRBY', hash, 'r', '-' .. n)
  return true
end
for i = 1, #KEYS / 2 do
  local hash, set = KEYS[2 * i - 1], KEYS[2 * i]
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', set, '-inf', now, 'LIMIT', 0, 1000)) do
    if drop(hash, set, old) then redis.call('ZADD', set, ARGV[4 * i + 2], 'x' .. old) end
  end
  local h = redis.call('HMGET', hash, 's', 'r')
  local spent = tonumber(h[1] or 0)
  local lost = math.max(tonumber(ARGV[4 * i + 3]) - spent, 0)
  if lost > 0 then
    spent = spent + lost
    redis.call('HINCRBY', hash, 's', string.format('%.0f', lost))
    redis.call('PEXPIREAT', hash, ARGV[4 * i + 2])
  end
  local sum = spent + tonumber(h[2] or 0)
  for j, n in ipairs({sum, spent, lost}) do taken[3 * i - 3 + j] = string.format('%.0f', n) end
  if op == 'reserve' and sum + tonumber(ARGV[4 * i + 1]) > tonumber(ARGV[4 * i]) then fits = 0 end
end
if fits == 0 then return {0, taken} end
for i = 1, #KEYS / 2 do
  local hash, set, n = KEYS[2 * i - 1], KEYS[2 * i], ARGV[4 * i + 1]
  if op == 'reserve' then
    redis.call('HSET', hash, id, n)
    redis.call('HINCRBY', hash, 'r', n)
    redis.call('ZADD', set, now + ttl, id)
  else
    local counts = drop(hash, set, id)
    counts = redis.call('ZREM', set, 'x' .. id) == 1 or counts
    if op == 'owed' then counts = redis.call('ZADD', set, ARGV[4 * i + 2], 'o' .. id) == 1 end
    if counts then redis.call('HINCRBY', hash, 's', n) end
  end
  redis.call('PEXPIREAT', hash, ARGV[4 * i + 2])
  redis.call('PEXPIREAT', set, ARGV[4 * i + 2])
end
return {1, taken}
