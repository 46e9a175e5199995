-- Takes a tenant out of the set unless it was entered again. KEYS: the set. ARGV: tenant, when it was entered.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('ZREM', KEYS[1], ARGV[1]) end
return 0
