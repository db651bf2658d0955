-- Sets the note of a mutex, if its tenure is the one that is on, as renew does.
-- KEYS  the mutex, its token, its note
-- ARGV  id, token, serial, text
-- Returns 1, also for a note that was overtaken by a later one of the same tenure; 0: the tenure is over.
-- The note is TOKEN:SERIAL:MS:TEXT, with the time of the server's clock. It does not expire.
local now = redis.call('MGET', KEYS[1], KEYS[2])
if now[1] ~= ARGV[1] or now[2] ~= ARGV[2] or redis.call('PTTL', KEYS[1]) < 0 then
    return 0
end
local token, serial = string.match(redis.call('GET', KEYS[3]) or '', '^(%d+):(%d+):')
if token == ARGV[2] and tonumber(serial) >= tonumber(ARGV[3]) then
    return 1
end
local time = redis.call('TIME')
local ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('SET', KEYS[3], ARGV[2] .. ':' .. ARGV[3] .. ':' .. ms .. ':' .. ARGV[4])
return 1
