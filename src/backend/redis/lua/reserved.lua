-- For the scripts that grant or free a mutex.

-- A mutex that was freed while somebody waited is reserved for the one whose turn it is, for so many
-- ms: its token is then this and the waiter's id. It is no token (those are digits), the next grant
-- writes over it, and clients that do not know of it take the mutex as they always did.
local RESERVED, RESERVED_MS = 'next:', 100
