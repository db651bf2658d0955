-- Renews many leases.
-- KEYS  for each: the mutex, its token
-- ARGV  for each: id, token, lease in ms
-- Returns for each 1, or 0 if id and token are not those of the tenure that is on.
local call, keys, args = redis.call, KEYS, ARGV
local now = call('MGET', unpack(keys))
local kept, key, arg = {}, 1, 1
for i = 1, #keys / 2 do
    local lease = args[arg + 2]
    if now[key] == args[arg] and now[key + 1] == args[arg + 1] and
        call('PEXPIRE', keys[key], lease) == 1 then
        call('PEXPIRE', keys[key + 1], lease)
        kept[i] = 1
    else
        kept[i] = 0
    end
    key, arg = key + 2, arg + 3
end
return kept
