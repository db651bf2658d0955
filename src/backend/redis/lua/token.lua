-- For the scripts that grant.

-- The token of a new tenure, and the fence from now on. It is above the last one, and not below the
-- server's clock, in us: the server may have issued higher ones than it remembers, or this may be
-- an older database than the one that issued them. The clock may have been set back, so what is
-- stored counts, too. last: the fence as MGET finds it. Clients that only count up go on from it.
local function next_token(key, last, time)
    local number = tonumber(string.match(last or '', '^%d+$'))
    number = number and number + 1 or redis.call('INCR', key) -- an error if it is none of ours
    number = math.max(number, time[1] * 1000000 + time[2])
    if number >= 9007199254740992 then
        error('the fence is not an integer that a script can count up')
    end
    local token = string.format('%.0f', number)
    redis.call('SET', key, token)
    return token
end
