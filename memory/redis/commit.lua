-- Replaces a record if it is still at the given revision, and keeps the counts of references and the
-- tenant's totals in the same step. All keys carry the tenant as hash tag, those of objects too.
-- KEYS: record, ends of lives, ids, totals.
-- ARGV: revision, record ('' = it goes), end of life in ms, id, step of contexts, most contexts (0 = any),
-- most bytes (0 = any), prefix of objects, channel, message, number of objects added, of objects dropped,
-- step of pinned bytes, most pinned bytes (0 = any); then sum, size and chunks of each added, and the sum of each dropped.
-- Returns {0, new revision}, {1} conflict, {2} an object is missing, {3} contexts, {4} bytes,
-- {5} pinned bytes, {6} a key holds another type than it should, and nothing was done.
local function is(key, kind)
  local found = redis.call('TYPE', key)['ok']
  return found == kind or found == 'none'
end
for i, kind in ipairs({'hash', 'zset', 'zset', 'hash'}) do
  if not is(KEYS[i], kind) then return {6} end
end
local rev = tonumber(redis.call('HGET', KEYS[1], 'rev') or '0')
if rev ~= tonumber(ARGV[1]) then return {1} end
local prefix, added, dropped = ARGV[8], tonumber(ARGV[11]), tonumber(ARGV[12])

local grows = 0
for i = 15, 14 + added * 3, 3 do
  local object = prefix .. ARGV[i]
  if not is(object, 'hash') then return {6} end
  if redis.call('EXISTS', object) == 0 then
    for c = 0, tonumber(ARGV[i + 2]) - 1 do
      if not is(object .. ':' .. c, 'string') then return {6} end
      if redis.call('EXISTS', object .. ':' .. c) == 0 then return {2} end
    end
    grows = grows + tonumber(ARGV[i + 1])
  end
end
local first = 15 + added * 3
for i = first, first + dropped - 1 do
  if not is(prefix .. ARGV[i], 'hash') then return {6} end
  local o = redis.call('HMGET', prefix .. ARGV[i], 'n', 's')
  if o[1] == '1' then grows = grows - tonumber(o[2]) end
end
local step, contexts, bytes = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local totals = redis.call('HMGET', KEYS[4], 'n', 'b', 'p')
if step > 0 and contexts > 0 and tonumber(totals[1] or '0') + step > contexts then return {3} end
if grows > 0 and bytes > 0 and tonumber(totals[2] or '0') + grows > bytes then return {4} end
local pin, pins = tonumber(ARGV[13]), tonumber(ARGV[14])
if pin > 0 and pins > 0 and tonumber(totals[3] or '0') + pin > pins then return {5} end

for field, by in pairs({n = step, b = grows, p = pin}) do -- lost totals do not go below nothing
  if redis.call('HINCRBY', KEYS[4], field, by) < 0 then redis.call('HSET', KEYS[4], field, 0) end
end
totals = redis.call('HMGET', KEYS[4], 'n', 'b', 'p')
if totals[1] == '0' and totals[2] == '0' and totals[3] == '0' then redis.call('UNLINK', KEYS[4]) end
for i = 15, 14 + added * 3, 3 do
  local object = prefix .. ARGV[i]
  if redis.call('HINCRBY', object, 'n', 1) == 1 then
    redis.call('HSET', object, 's', ARGV[i + 1], 'c', ARGV[i + 2])
    for c = 0, tonumber(ARGV[i + 2]) - 1 do redis.call('PERSIST', object .. ':' .. c) end
  end
end
for i = first, first + dropped - 1 do
  local object = prefix .. ARGV[i]
  if redis.call('HINCRBY', object, 'n', -1) <= 0 then
    for c = 0, tonumber(redis.call('HGET', object, 'c') or '0') - 1 do redis.call('UNLINK', object .. ':' .. c) end
    redis.call('UNLINK', object)
  end
end
if ARGV[2] == '' then
  redis.call('UNLINK', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[4])
  redis.call('ZREM', KEYS[3], ARGV[4])
else
  redis.call('HSET', KEYS[1], 'rev', rev + 1, 'rec', ARGV[2], 'exp', ARGV[3])
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[4])
  redis.call('ZADD', KEYS[3], 0, ARGV[4])
end
redis.call('PUBLISH', ARGV[9], ARGV[10])
return {0, rev + 1}
