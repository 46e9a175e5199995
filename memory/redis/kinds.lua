-- Finds keys that hold another type than they should. KEYS: the keys, of one slot. ARGV: 1 to drop
-- those, 0 to leave them; then the type of each. Returns those that were found.
local odd = {}
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key)['ok']
  if kind ~= 'none' and kind ~= ARGV[i + 1] then
    odd[#odd + 1] = key
    if ARGV[1] == '1' then redis.call('UNLINK', key) end
  end
end
return odd
