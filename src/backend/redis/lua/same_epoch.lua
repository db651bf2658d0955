-- Whether the server is still in the epoch (epoch.lua) that the connection found when it began; stands before
-- the scripts that grant. The note is gone after FLUSHALL, and is another's after a synchronization with
-- another master. INFO is asked because a server that was demoted and promoted again may have noticed no
-- write of the master in between; its replication id changes with every promotion.
local is_same
local function same_epoch(key, note)
    if is_same == nil then
        local info = redis.call('GET', key) == note and redis.call('INFO', 'replication')
        is_same = info and string.find(info, 'role:master', 1, true) and
            string.find(info, 'master_replid:' .. string.sub(note, 42, 81), 1, true) and true or false
    end
    return is_same
end
local OTHER_EPOCH = 'SIMBAEPOCH the server has changed its role or was emptied'
