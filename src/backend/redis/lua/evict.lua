-- Ends somebody's tenure.
-- KEYS  the mutex, its queue, its token
-- ARGV  its owner's id, or '' for whoever owns it; its token, or '' for whichever it is; '1': at once, '0': its
--       renewals fail from now on, and the lease runs out
-- Returns {1} or, if there is none such, {0, who owns it}.
-- include wake.lua
local value = redis.call('GET', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if not value or left < 0 then
    return {0, ''}
end
local is_evicted = string.sub(value, 1, #EVICTED) == EVICTED
local owner = is_evicted and string.sub(value, #EVICTED + 1) or value
local token = redis.call('GET', KEYS[3]) or ''
if (ARGV[1] ~= '' and owner ~= ARGV[1]) or (ARGV[2] ~= '' and token ~= ARGV[2]) then
    return {0, owner}
end
if ARGV[3] == '1' then
    redis.call('DEL', KEYS[1], KEYS[3])
    wake(KEYS[1], KEYS[2], KEYS[3], owner)
    redis.pcall('PUBLISH', KEYS[1], 'released@@' .. owner)
elseif not is_evicted then
    redis.call('SET', KEYS[1], EVICTED .. owner, 'PX', math.max(left, 1))
end
redis.pcall('PUBLISH', 'simba:evicted', KEYS[1]) -- its owner learns of it now
return {1}
