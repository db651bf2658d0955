-- Notes the epoch of this server: a life of its process, in one term as the master, with its memory whole.
-- Whatever ends an epoch (a restart, a demotion, FLUSHALL) may make the server forget owners and tokens.
-- KEYS  where it is noted
-- ARGV  run id, replication id, for how many ms the process has been up (0: that proves nothing), the term that
--       the sentinels count (0: they were not asked)
-- Returns the note: run id, replication id, term, when the epoch was first seen, since when nothing can have been
-- forgotten; both in us of the server's clock.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local noted = redis.call('GET', KEYS[1]) or ''
local head = ARGV[1] .. ':' .. ARGV[2] .. ':'
local is_known = string.sub(noted, 1, #head) == head
local term, since = string.match(noted, ':(%d+):%d+:(%d+)$')
local is_replaced = is_known and (tonumber(term) or -1) < tonumber(ARGV[4])
if is_known and not is_replaced and tonumber(since) <= now then
    return noted -- somebody else was faster
end

-- The uptime counts only if nothing in this life of the process can have changed its role or emptied it, and
-- nobody else was the master in between.
since = now
local calls = redis.call('INFO', 'commandstats')
local is_plain = not is_replaced
for _, name in ipairs({'slaveof', 'replicaof', 'flushall', 'flushdb', 'swapdb', 'debug'}) do
    is_plain = is_plain and not string.find(calls, 'cmdstat_' .. name .. ':', 1, true)
end
if is_plain then
    since = now - tonumber(ARGV[3]) * 1000
end
noted = head .. string.format('%.0f:%.0f:%.0f', tonumber(ARGV[4]), now, since)
redis.call('SET', KEYS[1], noted)
return noted
