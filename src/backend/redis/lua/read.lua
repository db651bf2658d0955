-- Who owns each of these.
-- KEYS  for each: the mutex, its token, its queue, its note
-- ARGV  for each: '1' if its note is asked for, or ''
-- Returns for each {owner, ms left, token, how many wait, note, its token, its age in ms}; owner and waiters nil:
-- not ours; note nil: there is none, or it is not ours.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local function note_of(key)
    local value = redis.pcall('GET', key)
    if type(value) ~= 'string' then return end
    return string.match(value, '^(%d+):%d+:(%d+):(.*)$')
end
local all = {}
for i = 1, #KEYS, 4 do
    local owner = redis.pcall('GET', KEYS[i])
    local token = redis.pcall('GET', KEYS[i + 1])
    local waiters = redis.pcall('ZCARD', KEYS[i + 2])
    local by, written, text
    if ARGV[(i + 3) / 4] == '1' then
        by, written, text = note_of(KEYS[i + 3])
    end
    if type(owner) == 'table' and not string.find(owner.err, 'WRONGTYPE', 1, true) then
        return owner
    elseif type(owner) == 'table' then
        all[#all + 1] = {false, -1, '', false, false, '', 0}
    else
        all[#all + 1] = {owner or '', owner and redis.call('PTTL', KEYS[i]) or 0,
                         type(token) == 'string' and token or '',
                         type(waiters) == 'number' and waiters or false,
                         text or false, by or '', text and math.max(now_ms - written, 0) or 0}
    end
end
return all
