-- Ends a tenure, or leaves the queue; either way a wake-up that was meant for us is passed on.
-- KEYS  the mutex, its queue, its token
-- ARGV  id, token; '' leaves only
-- Returns 1 if the tenure was ended and it is free; else {owner, ms left, token}.
local call = redis.call
local owner, token
local found = ARGV[2] ~= '' and call('MGET', KEYS[1], KEYS[3]) or {}
local freed = found[2] == ARGV[2] and (found[1] == ARGV[1] or found[1] == EVICTED .. ARGV[1])
if freed then
    call('DEL', KEYS[1], KEYS[3])
else
    owner, token = call('GET', KEYS[1]), call('GET', KEYS[3]) -- an error if these are not strings
end
-- Who leaves is not woken, and is out of a queue that was found empty.
if owner or not wake(KEYS[1], KEYS[2], ARGV[1], ARGV[1]) then
    redis.pcall('ZREM', KEYS[2], ARGV[1])
end
if freed then
    redis.pcall('PUBLISH', KEYS[1], 'released@@' .. ARGV[1])
    return 1
end
return {owner or '', owner and call('PTTL', KEYS[1]) or 0, token or ''}
