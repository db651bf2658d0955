-- A replica that became the master may have missed the last writes, and does not say since when it
-- is master. So the first who finds it in that role writes down the time.
-- KEYS  where;  ARGV  the server's run id
-- Returns for how many ms it has been known as master.
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local known = redis.call('HMGET', KEYS[1], 'run_id', 'since')
if known[1] == ARGV[1] and tonumber(known[2]) and tonumber(known[2]) <= ms then
    return ms - tonumber(known[2])
end
redis.call('HSET', KEYS[1], 'run_id', ARGV[1], 'since', string.format('%.0f', ms))
return 0
