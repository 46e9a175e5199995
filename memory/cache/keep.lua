-- Keeps an answer and, if there is one, the question to it, and drops others for them: first what is over, then what ends
-- first, until all together fit. All keys share a hash tag.
-- KEYS: ends of lives (by name of the answer), sizes (by name; the field '' is their sum).
-- ARGV: name, answer, question ('' = none), time to live in ms, most bytes, prefix of answers, prefix of questions, channel,
-- message ('' = none).
-- Returns 1 when it was kept, 0 when it does not fit.
local ends, sizes = KEYS[1], KEYS[2]
local name, answer, question, life, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

local function drop(n)
  local size = redis.call('HGET', sizes, n)
  if size then
    redis.call('HINCRBY', sizes, '', -tonumber(size))
    redis.call('HDEL', sizes, n)
  end
  redis.call('ZREM', ends, n)
  redis.call('UNLINK', ARGV[6] .. n, ARGV[7] .. n)
end

local size = #answer + #question
if size > most then return 0 end
drop(name)
for _, n in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 256)) do drop(n) end
while tonumber(redis.call('HGET', sizes, '') or '0') + size > most do
  local first = redis.call('ZRANGE', ends, 0, 0)[1]
  if not first then -- sizes without an answer: somebody deleted keys
    redis.call('DEL', sizes)
    break
  end
  drop(first)
end
redis.call('SET', ARGV[6] .. name, answer, 'PX', life)
if question ~= '' then redis.call('SET', ARGV[7] .. name, question, 'PX', life) end
redis.call('ZADD', ends, now + life, name)
redis.call('HSET', sizes, name, size)
redis.call('HINCRBY', sizes, '', size)
if ARGV[9] ~= '' then redis.call('PUBLISH', ARGV[8], ARGV[9]) end
return 1
