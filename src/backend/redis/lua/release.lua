-- Ends a tenure, or leaves the queue; either way a wake-up that was meant for us is passed on, and
-- with it the reservation.
-- KEYS  the mutex, its queue, its token
-- ARGV  id, token; '' leaves only; the successor, a waiter who asks right behind this, or ''; '1' if
--       that one may come before those who have waited longer
-- Returns 1 if the tenure was ended and it is free; else {owner, ms left, token}.
-- include reserved.lua
-- include wake.lua
local call = redis.call
local owner, token
local found = ARGV[2] ~= '' and call('MGET', KEYS[1], KEYS[3]) or {}
local freed = found[2] == ARGV[2] and (found[1] == ARGV[1] or found[1] == EVICTED .. ARGV[1])
if freed then
    call('DEL', KEYS[1], KEYS[3])
else
    owner, token = call('GET', KEYS[1]), call('GET', KEYS[3]) -- an error if these are not strings
end
local is_ours = token == RESERVED .. ARGV[1]
if is_ours then
    call('DEL', KEYS[3])
end
-- Who leaves is not woken, and is out of a queue that was found empty. Where another was woken, that
-- one comes.
local is_settled = owner or
    (token and not is_ours and string.sub(token, 1, #RESERVED) == RESERVED)
if freed and ARGV[4] ~= '' then
    redis.pcall('SET', KEYS[3], RESERVED .. ARGV[3], 'PX', RESERVED_MS)
    is_settled = true
end
if is_settled or not wake(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[1], ARGV[3]) then
    redis.pcall('ZREM', KEYS[2], ARGV[1])
end
if freed then
    redis.pcall('PUBLISH', KEYS[1], 'released@@' .. ARGV[1])
    return 1
end
return {owner or '', owner and call('PTTL', KEYS[1]) or 0, token or ''}
