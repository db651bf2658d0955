-- Who owns each of these.
-- KEYS  for each: the mutex, its token, its queue, its note
-- ARGV  for each: '1' if its note is asked for, or ''
-- Returns for each {owner, ms left, token, how many wait, note, its token, its age in ms, the server's clock in ms};
-- owner and waiters nil: not ours; note nil: there is none, or it is not ours.
-- One question tells the owners, tokens and notes of all, and one whether anybody waits for any.
local call, pcall = redis.call, redis.pcall
local values, queues = {}, {}
for i = 1, #KEYS, 4 do
    values[#values + 1] = KEYS[i]
    values[#values + 1] = KEYS[i + 1]
    values[#values + 1] = KEYS[i + 3]
    queues[#queues + 1] = KEYS[i + 2]
end
values = call('MGET', unpack(values))
local is_awaited = call('EXISTS', unpack(queues)) > 0
local time = call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local all = {}
for i = 1, #queues do
    local key = KEYS[4 * i - 3]
    local owner, token, note = values[3 * i - 2], values[3 * i - 1], values[3 * i]
    local left, waiters, by, written, text = 0, 0, nil, nil, nil
    if owner then
        left = call('PTTL', key)
    else
        owner = pcall('GET', key) or '' -- MGET takes what is no string for nothing
    end
    if is_awaited then
        waiters = pcall('ZCARD', queues[i])
    end
    if note and ARGV[i] == '1' then
        by, written, text = string.match(note, '^(%d+):%d+:(%d+):(.*)$')
    end
    if type(owner) == 'table' and not string.find(owner.err, 'WRONGTYPE', 1, true) then
        return owner
    elseif type(owner) == 'table' then
        all[i] = {false, -1, '', false, false, '', 0, now_ms}
    else
        all[i] = {owner, left, token or '', type(waiters) == 'number' and waiters or false,
                  text or false, by or '', text and math.max(now_ms - written, 0) or 0, now_ms}
    end
end
return all
