-- Which of the commands that the scripts use is this user not allowed to run? Tried on keys that are gone
-- afterwards.
-- KEYS  two of them; the first is also the channel
-- Returns the names of the commands; ~ and & if they are allowed, but not on these keys and this channel.
local value, queue = KEYS[1], KEYS[2]
local tries = {
    {'time'}, {'set', value, '1', 'PX', '1000'}, {'get', value}, {'mget', value}, {'exists', value},
    {'incr', value}, {'pttl', value}, {'zadd', queue, '1', 'x'}, {'zrank', queue, 'x'},
    {'zscore', queue, 'x'}, {'zcard', queue}, {'zrem', queue, 'y'}, {'zpopmin', queue},
    {'pexpire', value, '1000'}, {'pexpireat', value, '1'}, {'publish', value, 'rights'},
    {'del', value, queue},
}
-- How servers say what is denied: up to 7.0 "can't run this command", "can't access at least one of the
-- keys", "can't publish to the channel"; from 7.2 on, and Valkey, "User simba has no permissions to run
-- the 'set' command", "No permissions to access a key". The name of a user has no spaces. A replica, which says
-- "You can't write against a read only replica", asks for the rights first.
local function what_is_denied(text)
    if string.find(text, 'READONLY', 1, true) then return nil end
    if string.find(text, 'permissions to run ', 1, true) then return 'command' end
    return string.match(text, "can't (.*)") or string.match(text, 'permissions to access (.*)')
end
local denied = {}
for _, try in ipairs(tries) do
    local reply = redis.pcall(unpack(try))
    local what = type(reply) == 'table' and reply.err and what_is_denied(reply.err)
    if what then
        denied[#denied + 1] = string.find(what, 'key', 1, true) and '~' or
            string.find(what, 'channel', 1, true) and '&' or try[1]
    end
end
return denied
