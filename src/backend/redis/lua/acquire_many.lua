-- Takes many mutexes; one(KEYS, ARGV) does what acquire.lua does.
-- KEYS  the epoch's note; then mutex, queue, fence, token of the first mutex, of the second, ...
-- ARGV  the note as it was; then id, lease, score, ms without grants of the first mutex, of the
--       second, ...
-- Returns for each what one() does; nil: it failed, and left nothing behind. Alone it
-- says why.
-- The usual case is that all are free, nobody waits, and none is reserved. One question tells,
-- for all of them.
-- include reserved.lua
-- include other_epoch.lua
-- include same_epoch.lua
-- include token.lua
-- include acquire.lua as one
local call, keys, args = redis.call, KEYS, ARGV
if not same_epoch(call('GET', keys[1]), args[1]) then
    return redis.error_reply(OTHER_EPOCH)
end
local asked, fences = {}, {}
for i = 2, #keys, 4 do
    asked[#asked + 1] = keys[i]
    asked[#asked + 1] = keys[i + 1]
    asked[#asked + 1] = keys[i + 3]
    fences[#fences + 1] = keys[i + 2]
end
local plain = call('EXISTS', unpack(asked)) == 0
local last, time = call('MGET', unpack(fences)), call('TIME')

-- What one() does then. NX: the same mutex may be here twice.
local function take(key, arg, fence)
    local id, lease = args[arg], args[arg + 1]
    local token = next_token(keys[key + 2], fence, time)
    if not call('SET', keys[key], id, 'PX', lease, 'NX') then
        return false
    end
    call('SET', keys[key + 3], token, 'PX', lease)
    redis.pcall('PUBLISH', keys[key], 'acquired@@' .. id)
    return token
end

local all, key, arg = {}, 2, 2
for i = 1, (#keys - 1) / 4 do
    local fine, reply = plain and args[arg + 3] == '0', nil
    if fine then
        fine, reply = pcall(take, key, arg, last[i])
    end
    if not fine or not reply then
        fine, reply = pcall(one, {keys[1], keys[key], keys[key + 1], keys[key + 2], keys[key + 3]},
                            {args[1], args[arg], args[arg + 1], args[arg + 2], args[arg + 3]})
    end
    all[i] = fine and reply
    key, arg = key + 4, arg + 4
end
return all
