-- Takes many mutexes; one(KEYS, ARGV) before it is acquire.lua.
-- KEYS  those of the first mutex, of the second, ...
-- ARGV  those of the first mutex, of the second, ...
-- Returns for each the token, or what one() does; nil: it failed, and left nothing behind. Alone it
-- says why.
-- The usual case is that all are free and nobody waits. One question tells, for all of them.
local call, keys, args = redis.call, KEYS, ARGV
local asked = {}
for i = 1, #keys, 4 do
    asked[#asked + 1] = keys[i]
    asked[#asked + 1] = keys[i + 1]
end
local plain = call('EXISTS', unpack(asked)) == 0

-- What one() does then. NX: the same mutex may be here twice.
local function take(key, arg)
    local id, lease = args[arg], args[arg + 1]
    local token = call('INCR', keys[key + 2])
    if token < tonumber(args[arg + 4]) then
        return false
    end
    token = string.format('%.0f', token)
    if not call('SET', keys[key], id, 'PX', lease, 'NX') then
        return false
    end
    call('SET', keys[key + 3], token, 'PX', lease)
    redis.pcall('PUBLISH', keys[key], 'acquired@@' .. id)
    return token
end

local all, key, arg = {}, 1, 1
for i = 1, #keys / 4 do
    local fine, reply = plain and tonumber(args[arg + 3]) <= 0, nil
    if fine then
        fine, reply = pcall(take, key, arg)
    end
    if not fine or not reply then
        fine, reply = pcall(one, {keys[key], keys[key + 1], keys[key + 2], keys[key + 3]},
                            {args[arg], args[arg + 1], args[arg + 2], args[arg + 3], args[arg + 4]})
    end
    all[i] = fine and reply
    key, arg = key + 4, arg + 5
end
return all
