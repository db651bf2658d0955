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
-- Servers say "can't run this command", "can't access at least one of the keys" (up to 7.0), "has no
-- permissions to run the 'set' command", "No permissions to access a channel" (Redis 7.2, Valkey).
local function is_refusal(text)
    return string.find(text, "can't", 1, true) or string.find(text, 'permission', 1, true)
end
local denied = {}
for _, try in ipairs(tries) do
    local reply = redis.pcall(unpack(try))
    local text = type(reply) == 'table' and reply.err
    if text and is_refusal(text) then
        local place = string.match(text, ' access (.*)') or ''
        denied[#denied + 1] = string.find(place, 'key', 1, true) and '~' or
            string.find(place, 'channel', 1, true) and '&' or try[1]
    end
end
return denied
