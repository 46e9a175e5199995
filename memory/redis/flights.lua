-- Counts requests under way, all of them or none. KEYS: a sorted set for each, of ids by the time until which they count. ARGV: for how
-- many milliseconds they count, 0 to take them out; whether they do even when they do not fit; then for each how many may be under
-- way, and its id. Returns 1 or 0, and how many are under way in each set then. The time is that of Redis.
local ttl, force = tonumber(ARGV[1]), ARGV[2] == '1'
local used, fits = {}, 1
if ttl == 0 then
  for i, key in ipairs(KEYS) do
    redis.call('ZREM', key, ARGV[2 * i + 2])
  end
  return {fits, used}
end
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
for i, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  used[i] = redis.call('ZCARD', key)
  if not force and used[i] >= tonumber(ARGV[2 * i + 1]) then fits = 0 end
end
if fits == 1 then
  for i, key in ipairs(KEYS) do
    redis.call('ZADD', key, now + ttl, ARGV[2 * i + 2])
    redis.call('PEXPIRE', key, ttl + 1000)
    used[i] = redis.call('ZCARD', key)
  end
end
return {fits, used}
