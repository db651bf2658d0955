-- Ends many tenures; one(KEYS, ARGV) does what release.lua does.
-- KEYS  those of the first mutex, of the second, ...
-- ARGV  those of the first mutex, of the second, ...
-- Returns for each what one() does; nil: it failed, and left nothing behind. Alone it says why.
-- The usual case is that nobody waits. One question tells, for all of them, and one call deletes.
-- include reserved.lua
-- include wake.lua
-- include release.lua as one
local call, keys, args = redis.call, KEYS, ARGV
local queues, values = {}, {}
for i = 1, #keys, 3 do
    queues[#queues + 1] = keys[i + 1]
    values[#values + 1] = keys[i]
    values[#values + 1] = keys[i + 2]
end
local now = call('EXISTS', unpack(queues)) == 0 and call('MGET', unpack(values)) or {}

local ended, gone, seen = {}, {}, {}
for i = 1, #queues do
    local id, token, key = args[4 * i - 3], args[4 * i - 2], values[2 * i - 1]
    local owner = now[2 * i - 1]
    if token ~= '' and now[2 * i] == token and (owner == id or owner == EVICTED .. id) and
        not seen[key] then
        seen[key] = true
        ended[i] = true
        gone[#gone + 1] = key
        gone[#gone + 1] = values[2 * i]
    end
end
if #gone > 0 then
    call('DEL', unpack(gone))
end

local all = {}
for i = 1, #queues do
    local id, token, key = args[4 * i - 3], args[4 * i - 2], values[2 * i - 1]
    if ended[i] then
        redis.pcall('PUBLISH', key, 'released@@' .. id)
        all[i] = 1
    else
        local fine, reply = pcall(one, {key, queues[i], values[2 * i]},
                                  {id, token, args[4 * i - 1], args[4 * i]})
        all[i] = fine and reply
    end
end
return all
