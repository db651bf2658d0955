-- For the scripts that free a mutex.
-- include reserved.lua

-- The owner of an evicted tenure, with this before its id: then its renewals fail, also those of JVM clients,
-- who compare nothing but the id. No id begins with that byte, which UTF-8 does not have.
local EVICTED = '\255evicted:'

-- Wakes the first in the queue who still listens, and is not `leaver`. True: the queue is empty.
-- Until it comes, the mutex is reserved for it, if it knows of that: the scores of JVM clients are
-- whole seconds. The successor needs no waking: it asks at once.
local function wake(key, queue, token, by, leaver, successor)
    for _ = 1, 1000 do
        local head = redis.pcall('ZPOPMIN', queue)
        if head.err or not head[1] then
            return not head.err
        end
        local heard = head[1] == leaver and 0 or head[1] == successor and 1 or
            redis.pcall('PUBLISH', key .. ':' .. head[1], 'released@@' .. by)
        if type(heard) ~= 'number' or heard > 0 then -- not a number: without the right to it
            if heard == 1 and string.find(head[2], '.', 1, true) then
                redis.pcall('SET', token, RESERVED .. head[1], 'PX', RESERVED_MS)
            end
            return false
        end
    end
end
