-- Which of the commands that the scripts use is this user not allowed to run? Tried on keys that are gone
-- afterwards.
-- KEYS  three of them; the first is also the channel
-- Returns the names of the commands; ~ and & if they are allowed, but not on these keys and this channel.
local value, queue, hash = KEYS[1], KEYS[2], KEYS[3]
local tries = {
    {'time'}, {'set', value, '1', 'PX', '1000'}, {'get', value}, {'mget', value}, {'exists', value},
    {'incr', value}, {'pttl', value}, {'zadd', queue, '1', 'x'}, {'zrank', queue, 'x'},
    {'zscore', queue, 'x'}, {'zcard', queue}, {'zrem', queue, 'y'}, {'hset', hash, 'x', '1'},
    {'hmget', hash, 'x'}, {'pexpire', hash, '1000'}, {'pexpireat', hash, '1'},
    {'zpopmin', queue}, {'publish', value, 'rights'}, {'del', value, queue, hash},
}
local denied = {}
for _, try in ipairs(tries) do
    local reply = redis.pcall(unpack(try))
    local text = type(reply) == 'table' and reply.err
    if text and (string.find(text, "can't", 1, true) or string.find(text, 'NOPERM', 1, true)) then
        local keys = string.find(text, 'access', 1, true) and string.find(text, 'key', 1, true)
        denied[#denied + 1] = keys and '~' or string.find(text, 'channel', 1, true) and '&' or try[1]
    end
end
return denied
