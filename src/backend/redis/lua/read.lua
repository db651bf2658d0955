-- Who owns each of these.
-- KEYS  for each: the mutex, its token, its queue
-- Returns for each {owner, ms left, token, how many wait}; owner and waiters nil: not ours.
-- One question tells the owners and the tokens of all, and one whether anybody waits for any.
local call, pcall = redis.call, redis.pcall
local values, queues = {}, {}
for i = 1, #KEYS, 3 do
    values[#values + 1] = KEYS[i]
    values[#values + 1] = KEYS[i + 1]
    queues[#queues + 1] = KEYS[i + 2]
end
values = call('MGET', unpack(values))
local is_awaited = call('EXISTS', unpack(queues)) > 0
local all = {}
for i = 1, #queues do
    local key = KEYS[3 * i - 2]
    local owner, token, left, waiters = values[2 * i - 1], values[2 * i], 0, 0
    if owner then
        left = call('PTTL', key)
    else
        owner = pcall('GET', key) or '' -- MGET takes what is no string for nothing
    end
    if is_awaited then
        waiters = pcall('ZCARD', queues[i])
    end
    if type(owner) == 'table' and not string.find(owner.err, 'WRONGTYPE', 1, true) then
        return owner
    elseif type(owner) == 'table' then
        all[i] = {false, -1, '', false}
    else
        all[i] = {owner, left, token or '', type(waiters) == 'number' and waiters or false}
    end
end
return all
