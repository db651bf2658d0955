-- Ends somebody's tenure.
-- KEYS  the mutex, its queue, its token
-- ARGV  its token, or '' for whichever is on; '1': at once, '0': its renewals fail from now on
-- Returns 1, 0 if there is none such, 2 if its owner knows no tokens and can only be forced.
local owner = redis.call('GET', KEYS[1])
local token = redis.call('GET', KEYS[3]) or ''
if not owner or redis.call('PTTL', KEYS[1]) < 0 or
    (ARGV[1] ~= '' and token ~= ARGV[1] and token ~= '-' .. ARGV[1]) then
    return 0
end
if ARGV[2] == '1' then
    redis.call('DEL', KEYS[1], KEYS[3])
    wake(KEYS[1], KEYS[2], owner)
    redis.pcall('PUBLISH', KEYS[1], 'released@@' .. owner)
    return 1
end
if token == '' then
    return 2
end
if string.sub(token, 1, 1) ~= '-' then
    redis.call('SET', KEYS[3], '-' .. token, 'PX', redis.call('PTTL', KEYS[1]))
end
return 1
