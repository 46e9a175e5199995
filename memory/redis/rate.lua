-- Puts amounts into buckets that leak out in a minute, all of them or none. KEYS: the buckets. ARGV: for each the room, the amount
-- and whether it is put in even when it does not fit. A bucket whose room has changed keeps the share that was used. Returns 1 or 0,
-- and how full each bucket is then. The time is that of Redis, so clocks of replicas do not matter.
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + tonumber(t[2]) / 1000
local full, fits = {}, 1
for i, key in ipairs(KEYS) do
  local room, n = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1])
  local b = redis.call('HMGET', key, 'f', 't', 'r')
  local f = tonumber(b[1] or 0) * room / tonumber(b[3] or room)
  f = math.max(f - math.max(now - tonumber(b[2] or now), 0) * room / 60000, 0)
  full[i] = f
  if ARGV[3 * i] == '0' and f + n > room then fits = 0 end
end
for i, key in ipairs(KEYS) do
  local room, n = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1])
  if fits == 1 then
    full[i] = math.max(full[i] + n, 0)
    redis.call('HSET', key, 'f', string.format('%.6f', full[i]), 't', string.format('%.3f', now), 'r', room)
    redis.call('PEXPIRE', key, math.ceil(full[i] / room * 60000) + 1000)
  end
  full[i] = string.format('%.6f', full[i])
end
return {fits, full}
