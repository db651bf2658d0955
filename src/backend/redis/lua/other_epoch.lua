-- For the scripts that grant or renew: what they say if the server is no longer in the
-- epoch (epoch.lua) that the connection found when it began.
local OTHER_EPOCH = 'SIMBAEPOCH the server has changed its role, was emptied, or has swapped databases'
