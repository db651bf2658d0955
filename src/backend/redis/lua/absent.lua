-- Which of these mutexes are free? The look behind the messages, which may get lost.
local free = {}
for i = 1, #KEYS do
    if redis.call('EXISTS', KEYS[i]) == 0 then
        free[#free + 1] = KEYS[i]
    end
end
return free
