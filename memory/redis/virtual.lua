-- Puts a record in the place of what was read.
-- KEYS: records by name, revision. ARGV: name, what was read, what is written, most, revision.
local was = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if was ~= ARGV[2] then return 'changed' end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
elseif was == '' and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then
  return 'full'
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
redis.call('SET', KEYS[2], ARGV[5])
return 'done'
