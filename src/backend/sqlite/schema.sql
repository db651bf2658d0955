-- The database of the sqlite: store. Times are nanoseconds of boot time (boot_clock.h).
CREATE TABLE meta (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    boot    TEXT NOT NULL,    -- the boot of the machine that last wrote here
    file    TEXT NOT NULL,    -- which file this is, beside which locks: to know a copy
    base    INTEGER NOT NULL, -- tokens are above this, whatever a power cut has lost
    clients INTEGER NOT NULL, -- the last client number given
    first   INTEGER NOT NULL  -- not used any more
) STRICT;

-- The row of the mutex '' is the store's own: token counts the write transactions, acquired is the
-- base of all tokens, nothing is granted before until, lease is the longest that was granted.
CREATE TABLE mutex (
    name      TEXT PRIMARY KEY,
    owner     TEXT NOT NULL,    -- '': nobody
    token     INTEGER NOT NULL, -- of the last tenure; rises
    client    INTEGER NOT NULL, -- whose liveness counts; 0: nobody's, the lease alone
    live      INTEGER NOT NULL, -- the files that this client's locks are in
    acquired  INTEGER NOT NULL,
    until     INTEGER NOT NULL, -- another may take it from here on
    lease     INTEGER NOT NULL,
    evicted   INTEGER NOT NULL, -- renewals fail
    contended INTEGER NOT NULL  -- somebody waits: wake them when it is free
) STRICT, WITHOUT ROWID;
