-- The table of the postgresql: store. Times are milliseconds since 1970 by the server's clock.
CREATE TABLE IF NOT EXISTS simba_mutex (
    mutex         varchar(66) COLLATE "C" NOT NULL PRIMARY KEY,
    acquired_at   bigint NOT NULL,
    ttl_at        bigint NOT NULL, -- below 2^32: evicted, and the first character of its id
    transition_at bigint NOT NULL, -- from here on another may take it
    owner_id      varchar(128) COLLATE "C" NOT NULL,
    version       bigint NOT NULL,
    fencing_token bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
