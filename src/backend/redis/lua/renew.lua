-- Renews many leases.
-- KEYS  the epoch's note; then for each: the mutex, its token
-- ARGV  the note as it was; then for each: id, token, lease in ms
-- Returns how many were renewed, and then which were not, counted from 1: id and token are not those of
-- the tenure that is on; an error SIMBAEPOCH if the server is in another epoch. A tenure that was renewed in a
-- database that is away at times would overlap with one that is granted in the other.
-- include other_epoch.lua
local call, keys, args = redis.call, KEYS, ARGV
local now, time = call('MGET', unpack(keys)), call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local reply, kept, arg = {0}, 0, 2
if now[1] ~= args[1] then
    return redis.error_reply(OTHER_EPOCH)
end

-- PEXPIREAT: the server makes one of every PEXPIRE, which costs it more than this.
local ends = {}
local function end_of(lease)
    ends[lease] = string.format('%.0f', now_ms + lease)
    return ends[lease]
end

for key = 2, #keys, 2 do
    local lease = args[arg + 2]
    local at = ends[lease] or end_of(lease)
    if now[key] == args[arg] and now[key + 1] == args[arg + 1] and
        call('PEXPIREAT', keys[key], at) == 1 then
        call('PEXPIREAT', keys[key + 1], at)
        kept = kept + 1
    else
        reply[#reply + 1] = key / 2
    end
    arg = arg + 3
end
reply[1] = kept
return reply
