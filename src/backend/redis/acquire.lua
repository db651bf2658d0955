-- Takes the mutex if it is free; else joins its queue.
-- KEYS  the mutex, its queue, its fence, its token
-- ARGV  id, lease in ms, the waiter's own first score or '', ms for which nothing may be granted, when
--       the server's memory began (its start, its promotion), in us of its clock
-- Returns {1 granted | 0 owned or not to be had | 2 not ours, owner, ms left, token, score, rank}.
-- What can fail comes before what counts: an error leaves nothing behind but a spent token.
local owner = redis.call('GET', KEYS[1])
if not owner then
    if tonumber(ARGV[4]) > 0 then
        return {0, '', tonumber(ARGV[4]), ''}
    end
    local token = redis.call('INCR', KEYS[3])
    if token < tonumber(ARGV[5]) then
        -- Counted before that, or lost since: what was given out then may be more than is remembered.
        -- The clock, in us, is above all that can have been counted.
        local now = redis.call('TIME')
        token = now[1] .. string.format('%06d', now[2])
        redis.call('SET', KEYS[3], token)
    else
        token = string.format('%.0f', token)
    end
    redis.call('ZREM', KEYS[2], ARGV[1])
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    redis.call('SET', KEYS[4], token, 'PX', ARGV[2])
    redis.pcall('PUBLISH', KEYS[1], 'acquired@@' .. ARGV[1])
    return {1, ARGV[1], tonumber(ARGV[2]), token}
end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
    return {2, owner, left, ''}
end
local token = redis.call('GET', KEYS[4]) or ''
local score = ARGV[3]
if score == '' then
    local now = redis.call('TIME')
    score = now[1] .. '.' .. string.format('%06d', now[2])
end
redis.call('ZADD', KEYS[2], 'NX', score, ARGV[1])
local keep = left + tonumber(ARGV[2]) + 60000
if redis.call('PTTL', KEYS[2]) < keep then
    redis.call('PEXPIRE', KEYS[2], keep)
end
return {0, owner, left, token, redis.call('ZSCORE', KEYS[2], ARGV[1]),
        redis.call('ZRANK', KEYS[2], ARGV[1])}
