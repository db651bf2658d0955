-- Who owns each of these.
-- KEYS  for each: the mutex, its token, its queue
-- Returns for each {owner, ms left, token, how many wait}; owner and waiters nil: not ours.
local all = {}
for i = 1, #KEYS, 3 do
    local owner = redis.pcall('GET', KEYS[i])
    local token = redis.pcall('GET', KEYS[i + 1])
    local waiters = redis.pcall('ZCARD', KEYS[i + 2])
    if type(owner) == 'table' and not string.find(owner.err, 'WRONGTYPE', 1, true) then
        return owner
    elseif type(owner) == 'table' then
        all[#all + 1] = {false, -1, '', false}
    else
        all[#all + 1] = {owner or '', owner and redis.call('PTTL', KEYS[i]) or 0,
                         type(token) == 'string' and token or '',
                         type(waiters) == 'number' and waiters or false}
    end
end
return all
