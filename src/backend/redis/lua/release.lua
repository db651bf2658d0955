-- Ends a tenure, or leaves the queue; either way a wake-up that was meant for us is passed on.
-- KEYS  the mutex, its queue, its token
-- ARGV  id, token; '' leaves only
-- Returns {1 released | 0 not, owner, ms left, token}.
local owner = redis.call('GET', KEYS[1])
local token = redis.call('GET', KEYS[3]) or ''
local freed = 0
if ARGV[2] ~= '' and token == ARGV[2] and (owner == ARGV[1] or owner == EVICTED .. ARGV[1]) then
    redis.call('DEL', KEYS[1], KEYS[3])
    owner, token, freed = false, '', 1
end
redis.pcall('ZREM', KEYS[2], ARGV[1])
if not owner then
    wake(KEYS[1], KEYS[2], ARGV[1])
end
if freed == 1 then
    redis.pcall('PUBLISH', KEYS[1], 'released@@' .. ARGV[1])
end
return {freed, owner or '', owner and redis.call('PTTL', KEYS[1]) or 0, token}
