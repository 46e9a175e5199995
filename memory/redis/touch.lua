-- Moves the end of a live record's life, never nearer. KEYS: record, ends of lives. ARGV: end in ms, id, the
-- mark of a record that is not live, how long the record lived when it was used. Texts of a record have their
-- quotes escaped, so that none looks like a member.
local r = redis.call('HMGET', KEYS[1], 'exp', 'rec')
if not r[1] or tonumber(r[1]) >= tonumber(ARGV[1]) or string.find(r[2], ARGV[3], 1, true) then return 0 end
if string.match(r[2], '"ttl":(%d+)') ~= ARGV[4] or string.find(r[2], '"fixed":true', 1, true) then return 0 end
redis.call('HSET', KEYS[1], 'exp', ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[1], ARGV[2])
return 1
