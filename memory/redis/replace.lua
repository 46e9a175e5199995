-- Puts new chunks in the place of those of an object that a record refers to, or drops them when there is none.
-- KEYS: object. ARGV: number of new chunks, what their keys have behind that of the object. All keys carry the same hash tag.
local object, n, new = KEYS[1], tonumber(ARGV[1]), KEYS[1] .. ':' .. ARGV[2] .. ':'
local old = tonumber(redis.call('HGET', object, 'c') or '0')
local whole = old > 0
for i = 0, n - 1 do whole = whole and redis.call('EXISTS', new .. i) == 1 end
if not whole then
  for i = 0, n - 1 do redis.call('UNLINK', new .. i) end
  return 0
end
for i = n, old - 1 do redis.call('UNLINK', object .. ':' .. i) end
for i = 0, n - 1 do
  redis.call('UNLINK', object .. ':' .. i)
  redis.call('RENAME', new .. i, object .. ':' .. i)
  redis.call('PERSIST', object .. ':' .. i)
end
redis.call('HSET', object, 'c', n)
redis.call('HINCRBY', object, 'f', 1)
return 1
