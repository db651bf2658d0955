-- Renews many leases.
-- KEYS  for each: the mutex, its token
-- ARGV  for each: id, token, lease in ms
-- Returns how many were renewed, and then which were not, counted from 1: id and token are not those of
-- the tenure that is on.
local call, keys, args = redis.call, KEYS, ARGV
local now = call('MGET', unpack(keys))
local reply, kept, arg = {0}, 0, 1
for key = 1, #keys, 2 do
    local lease = args[arg + 2]
    if now[key] == args[arg] and now[key + 1] == args[arg + 1] and
        call('PEXPIRE', keys[key], lease) == 1 then
        call('PEXPIRE', keys[key + 1], lease)
        kept = kept + 1
    else
        reply[#reply + 1] = (key + 1) / 2
    end
    arg = arg + 3
end
reply[1] = kept
return reply
