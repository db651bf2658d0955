-- Notes the epoch of this database: a life of the server's process, in one term as the master, with its memory
-- whole, and with this database under its number. Whatever ends an epoch (a restart, a demotion, FLUSHALL, SWAPDB)
-- may make the server forget owners and tokens.
-- KEYS  where it is noted
-- ARGV  run id, replication id, the number of the database, for how many ms the process has been up (0: that proves
--       nothing), the term that the sentinels count (0: they were not asked)
-- Returns the note: run id, replication id, term, number of the database, since when nothing can have been
-- forgotten, in us of the server's clock.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local noted = call('GET', KEYS[1]) or ''
local head, number = ARGV[1] .. ':' .. ARGV[2] .. ':', ARGV[3]
local FORM = '^%x+:%x+:(%d+):(%d+):(%d+)$'
local term, home, since = string.match(noted, FORM)
local is_of_this_life = string.sub(noted, 1, #head) == head
local is_known = is_of_this_life and home == number and tonumber(term) >= tonumber(ARGV[5])
if is_known and tonumber(since) <= now then
    return noted -- somebody else was faster
end

-- The uptime counts only if nothing in this life of the process can have changed its role or emptied it, and
-- nobody else was the master in between. Who resets the counts is counted, up to Redis 6 as any CONFIG.
local is_plain = is_known or not is_of_this_life
local calls = call('INFO', 'commandstats')
for _, name in ipairs({'slaveof', 'replicaof', 'flushall', 'flushdb', 'swapdb', 'debug', 'config', 'config|resetstat'}) do
    is_plain = is_plain and not string.find(calls, 'cmdstat_' .. name .. ':', 1, true)
end

-- Of all databases that have been under this number, one has a note of it: where the others went, theirs ends now.
-- So when one of them comes back, it begins an epoch, too. Only those that have keys are listed.
local selected = number
for other in string.gmatch(call('INFO', 'keyspace'), 'db(%d+):') do
    if other ~= number then
        call('SELECT', other)
        selected = other
        local text = redis.pcall('GET', KEYS[1])
        local _, its_home = string.match(type(text) == 'string' and text or '', FORM)
        if its_home == number then
            call('DEL', KEYS[1])
            is_plain = false
        end
    end
end
if selected ~= number then
    call('SELECT', number)
end

since = is_plain and now - tonumber(ARGV[4]) * 1000 or now
noted = head .. string.format('%.0f:%s:%.0f', tonumber(ARGV[5]), number, since)
call('DEL', KEYS[1]) -- a script that has written may go on where the memory is full: owners renew by this note
call('SET', KEYS[1], noted)
return noted
