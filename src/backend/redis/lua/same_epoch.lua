-- For the scripts that grant: whether the server is still in the epoch (epoch.lua) that the connection
-- found when it began. The note is gone after FLUSHALL, and is another's after a
-- synchronization with another master, or in another database. INFO is asked because a server that was demoted and promoted
-- again may have noticed no write of the master in between; its replication id changes with every
-- promotion. noted is what the server has, note what the connection found.
local is_master
local function same_epoch(noted, note)
    if is_master == nil then
        local info = redis.call('INFO', 'replication')
        is_master = string.find(info, 'role:master', 1, true) and
            string.find(info, 'master_replid:' .. string.sub(note, 42, 81), 1, true) and true or false
    end
    return is_master and noted == note
end
