-- Stands before the scripts that free a mutex.

-- The owner of an evicted tenure, with this before its id: then its renewals fail, also those of JVM clients,
-- who compare nothing but the id. No id begins with that byte, which UTF-8 does not have.
local EVICTED = '\255evicted:'

-- Wakes the first in the queue who still listens.
local function wake(key, queue, by)
    for _ = 1, 1000 do
        local head = redis.pcall('ZPOPMIN', queue)
        if head.err or not head[1] then
            return
        end
        local heard = redis.pcall('PUBLISH', key .. ':' .. head[1], 'released@@' .. by)
        if type(heard) ~= 'number' or heard > 0 then -- not a number: without the right to it
            return
        end
    end
end
