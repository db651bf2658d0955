-- Takes the mutex if it is free; else joins its queue.
-- KEYS  the epoch's note, the mutex, its queue, its fence, its token
-- ARGV  the note as it was, id, lease in ms, the waiter's own first score or '', ms for which
--       nothing may be granted
-- Returns the token, if it is granted; else {0 owned or not to be had | 2 not ours, owner, ms left,
-- token, score, rank}, where an owner '' with a score means that it is reserved for another;
-- an error SIMBAEPOCH if it is free, but the server is in another epoch.
-- What can fail comes before what counts: an error leaves nothing behind but a spent token.
-- include reserved.lua
-- include other_epoch.lua
-- include same_epoch.lua
-- include token.lua
local call = redis.call
local found = call('MGET', KEYS[2], KEYS[1], KEYS[5], KEYS[4])
local owner, token = found[1], found[3] or ''
local left = 0
if owner then
    left = call('PTTL', KEYS[2])
    if left < 0 then
        return {2, owner, left, ''}
    end
elseif ARGV[5] ~= '0' then
    return {0, '', tonumber(ARGV[5]), ''}
elseif token ~= RESERVED .. ARGV[2] and string.sub(token, 1, #RESERVED) == RESERVED then
    left = call('PTTL', KEYS[5])
end
if not owner and left <= 0 then
    if not same_epoch(found[2], ARGV[1]) then
        return redis.error_reply(OTHER_EPOCH)
    end
    token = next_token(KEYS[4], found[4], call('TIME'))
    call('ZREM', KEYS[3], ARGV[2])
    if not call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3], 'NX') then -- MGET takes a list for nothing
        if not found[4] then
            call('DEL', KEYS[4])
        end
        return call('GET', KEYS[2]) -- an error
    end
    call('SET', KEYS[5], token, 'PX', ARGV[3])
    redis.pcall('PUBLISH', KEYS[2], 'acquired@@' .. ARGV[2])
    return token
end
local score = ARGV[4]
if score == '' then
    local now = call('TIME')
    score = now[1] .. '.' .. string.format('%06d', now[2])
end
call('ZADD', KEYS[3], 'NX', score, ARGV[2])
local keep = left + tonumber(ARGV[3]) + 60000
if call('PTTL', KEYS[3]) < keep then
    call('PEXPIRE', KEYS[3], keep)
end
return {0, owner or '', left, token, call('ZSCORE', KEYS[3], ARGV[2]),
        call('ZRANK', KEYS[3], ARGV[2])}
