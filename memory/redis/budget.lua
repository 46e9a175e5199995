-- Keeps what is spent of budgets, and what is reserved of them, in billionths of a dollar. KEYS: for each budget a hash (s: spent, r:
-- reserved, by id: one reservation) and a sorted set of ids by the time until which they count. ARGV: reserve, settle or owed; the id;
-- for how many milliseconds it counts; then for each budget its room, the amount, and when its keys may go (Unix milliseconds). Settle
-- counts an amount in place of its reservation, also of one that nobody settled in time (x before its id), and does nothing where there
-- is none; owed counts it in any case, once (o before its id). So both may be said twice. Returns 1 or 0, and what was spent and
-- reserved of each budget before. The time is that of Redis.
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
    if drop(hash, set, old) then redis.call('ZADD', set, ARGV[3 * i + 3], 'x' .. old) end
  end
  local h = redis.call('HMGET', hash, 's', 'r')
  local sum = tonumber(h[1] or 0) + tonumber(h[2] or 0)
  taken[i] = string.format('%.0f', sum)
  if op == 'reserve' and sum + tonumber(ARGV[3 * i + 2]) > tonumber(ARGV[3 * i + 1]) then fits = 0 end
end
if fits == 0 then return {0, taken} end
for i = 1, #KEYS / 2 do
  local hash, set, n = KEYS[2 * i - 1], KEYS[2 * i], ARGV[3 * i + 2]
  if op == 'reserve' then
    redis.call('HSET', hash, id, n)
    redis.call('HINCRBY', hash, 'r', n)
    redis.call('ZADD', set, now + ttl, id)
  else
    local counts = drop(hash, set, id)
    counts = redis.call('ZREM', set, 'x' .. id) == 1 or counts
    if op == 'owed' then counts = redis.call('ZADD', set, ARGV[3 * i + 3], 'o' .. id) == 1 end
    if counts then redis.call('HINCRBY', hash, 's', n) end
  end
  redis.call('PEXPIREAT', hash, ARGV[3 * i + 3])
  redis.call('PEXPIREAT', set, ARGV[3 * i + 3])
end
return {1, taken}
