-- Renews many leases.
-- KEYS  for each: the mutex, its token
-- ARGV  for each: id, token, lease in ms
-- Returns for each 1, or 0 if id and token are not those of the tenure that is on.
local now = redis.call('MGET', unpack(KEYS))
local kept = {}
for i = 1, #KEYS / 2 do
    local key, arg = 2 * i - 1, 3 * i - 2
    kept[i] = 0
    if now[key] == ARGV[arg] and now[key + 1] == ARGV[arg + 1] and
        redis.call('PEXPIRE', KEYS[key], ARGV[arg + 2]) == 1 then
        redis.call('PEXPIRE', KEYS[key + 1], ARGV[arg + 2])
        kept[i] = 1
    end
end
return kept
