-- Wakes the first in the queue who still listens; stands before the scripts that free a mutex.
local function wake(key, queue, by)
    for _ = 1, 1000 do
        local head = redis.pcall('ZPOPMIN', queue)
        if head.err or not head[1] then
            return
        end
        if redis.call('PUBLISH', key .. ':' .. head[1], 'released@@' .. by) > 0 then
            return
        end
    end
end
