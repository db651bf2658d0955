-- Made of src/backend/mysql/statements.sql by the build, for a table of the kind 'versioned'; see there.

-- clause at_once
-- Before a statement of MariaDB: locks that others have are not waited for.
SET STATEMENT innodb_lock_wait_timeout = 0 FOR

-- clause without_time_limit
-- Before a statement of MariaDB.
SET STATEMENT max_statement_time = 0 FOR

-- statement contend_one
-- Takes the mutex if it is free, and has a row. No more than one row can be met: a lock on a row holds up its owner,
-- so a contender reads first, unless the last mutex that it asked for was free.
UPDATE simba_mutex SET
    version = LAST_INSERT_ID(GREATEST(version + 1, CAST(TIMESTAMPDIFF(SECOND, '2020-01-01', UTC_TIMESTAMP()) AS UNSIGNED))),
    owner_id = :id,
    acquired_at = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000),
    ttl_at = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + :ttl,
    transition_at = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + :lease
WHERE mutex = :mutex AND BINARY CONVERT(mutex USING utf8mb4) = :mutex_bytes
    AND transition_at <= (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)
    AND 1 = (
        SELECT 1
        UNION ALL
        SELECT 1 FROM information_schema.COLUMNS
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'simba_mutex' AND COLUMN_NAME = 'fencing_token'
    )

-- statement make
-- Takes a mutex that has no row.
INSERT INTO simba_mutex (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
VALUES (
    :mutex,
    IF((
        SELECT 1
        UNION ALL
        SELECT 1 FROM information_schema.COLUMNS
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'simba_mutex' AND COLUMN_NAME = 'fencing_token'
    ), (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000), 0),
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + :ttl,
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + :lease,
    :id,
    LAST_INSERT_ID(CAST(TIMESTAMPDIFF(SECOND, '2020-01-01', UTC_TIMESTAMP()) AS UNSIGNED))
)

-- statement contend
-- Many at once, by MariaDB: a row for each is inserted; the update says what becomes of one that is there. A missing
-- row is made, and taken by that.
INSERT INTO simba_mutex (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
VALUES :each (
    :mutex,
    IF(@g := (
        SELECT 1
        UNION ALL
        SELECT 1 FROM information_schema.COLUMNS
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'simba_mutex' AND COLUMN_NAME = 'fencing_token'
    ), (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000), 0),
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + :ttl,
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + :lease,
    :id,
    CAST(TIMESTAMPDIFF(SECOND, '2020-01-01', UTC_TIMESTAMP()) AS UNSIGNED)
) :end
ON DUPLICATE KEY UPDATE
    owner_id = IF(
        @g := (
            BINARY mutex = BINARY VALUES(mutex)
            AND transition_at <= (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)
        ),
        VALUES(owner_id), owner_id),
    version = IF(@g, GREATEST(version + 1, CAST(TIMESTAMPDIFF(SECOND, '2020-01-01', UTC_TIMESTAMP()) AS UNSIGNED)), version),
    acquired_at = IF(@g, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000), acquired_at),
    ttl_at = IF(@g, VALUES(ttl_at), ttl_at),
    transition_at = IF(@g, VALUES(transition_at), transition_at)
RETURNING
    mutex,
    owner_id,
    IF(version + 1577836800 < acquired_at DIV 1000, 0, version),
    CAST(LEAST(transition_at, 9000000000000) AS SIGNED) - (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000),
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) - CAST(LEAST(acquired_at, 9000000000000) AS SIGNED),
    IF(ttl_at < 4294967296, ttl_at, NULL),
    @g

-- statement renew_one
UPDATE simba_mutex SET
    ttl_at = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + :ttl,
    transition_at = GREATEST(transition_at, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + :lease)
WHERE mutex = :mutex AND BINARY CONVERT(mutex USING utf8mb4) = :mutex_bytes
    AND BINARY CONVERT(owner_id USING utf8mb4) = :id_bytes
    AND version = :token
    AND transition_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)

-- statement renew
-- Many at once, by MariaDB. The row that is inserted if there is none has ended in 1970.
INSERT INTO simba_mutex (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
VALUES :each (
    :mutex, IF(@g := 0, 0, 0), :ttl, :lease, :id,  :token
) :end
ON DUPLICATE KEY UPDATE
    ttl_at = IF(
        @g := (
            BINARY mutex = BINARY VALUES(mutex) AND BINARY owner_id = BINARY VALUES(owner_id)
            AND version = VALUES(version)
            AND transition_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)
        ),
        (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + VALUES(ttl_at), ttl_at),
    transition_at = IF(
        @g, GREATEST(transition_at, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + VALUES(transition_at)),
        transition_at)
RETURNING
    mutex,
    owner_id,
    IF(version + 1577836800 < acquired_at DIV 1000, 0, version),
    CAST(LEAST(transition_at, 9000000000000) AS SIGNED) - (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000),
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) - CAST(LEAST(acquired_at, 9000000000000) AS SIGNED),
    IF(ttl_at < 4294967296, ttl_at, NULL),
    @g

-- statement release_one
UPDATE simba_mutex SET acquired_at = 0, transition_at = 0, owner_id = '', ttl_at = 0
WHERE mutex = :mutex AND BINARY CONVERT(mutex USING utf8mb4) = :mutex_bytes
    AND version = :token
    AND (
        BINARY CONVERT(owner_id USING utf8mb4) = :id_bytes
        OR (ttl_at < 4294967296 AND BINARY CONVERT(owner_id USING utf8mb4) = :evicted_id_bytes)
    )

-- statement release
-- Many at once, by MariaDB. Of an evicted id the first character differs.
INSERT INTO simba_mutex (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
VALUES :each (
    :mutex, IF(@g := 0, 0, 0), 0, 0, :id,  :token
) :end
ON DUPLICATE KEY UPDATE
    acquired_at = IF(
        @g := (
            BINARY mutex = BINARY VALUES(mutex) AND version = VALUES(version)
            AND (
                BINARY owner_id = BINARY VALUES(owner_id)
                OR (
                    ttl_at < 4294967296 AND LEFT(owner_id, 1) IN ('~', '!')
                    AND BINARY SUBSTRING(owner_id, 2) = BINARY SUBSTRING(VALUES(owner_id), 2)
                )
            )
        ),
        0, acquired_at),
    ttl_at = IF(@g, 0, ttl_at),
    transition_at = IF(@g, 0, transition_at),
    owner_id = IF(@g, '', owner_id)
RETURNING
    mutex,
    owner_id,
    IF(version + 1577836800 < acquired_at DIV 1000, 0, version),
    CAST(LEAST(transition_at, 9000000000000) AS SIGNED) - (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000),
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) - CAST(LEAST(acquired_at, 9000000000000) AS SIGNED),
    IF(ttl_at < 4294967296, ttl_at, NULL),
    @g

-- statement pass
-- The next tenure begins where the one before ends.
UPDATE simba_mutex SET
    version = LAST_INSERT_ID(GREATEST(version + 1, CAST(TIMESTAMPDIFF(SECOND, '2020-01-01', UTC_TIMESTAMP()) AS UNSIGNED))),
    owner_id = :id,
    acquired_at = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000),
    ttl_at = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + :ttl,
    transition_at = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) + :lease
WHERE mutex = :mutex AND BINARY CONVERT(mutex USING utf8mb4) = :mutex_bytes
    AND version = :before_token
    AND BINARY CONVERT(owner_id USING utf8mb4) = :before_id_bytes
    AND 1 = (
        SELECT 1
        UNION ALL
        SELECT 1 FROM information_schema.COLUMNS
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'simba_mutex' AND COLUMN_NAME = 'fencing_token'
    )

-- statement evict
-- Gracefully: the owner's id changes, so that neither ours nor a JVM owner can renew, and the lease runs out. ttl_at
-- says that it has been done, and keeps the character.
UPDATE simba_mutex SET
    ttl_at = IF(
        @g := NOT (ttl_at < 4294967296),
        CONV(HEX(CONVERT(LEFT(owner_id, 1) USING utf8mb4)), 16, 10), ttl_at),
    owner_id = IF(
        @g,
        CONCAT(IF(LEFT(owner_id, 1) = '~', '!', '~'), SUBSTRING(owner_id, 2)), owner_id)
WHERE mutex = :mutex AND BINARY CONVERT(mutex USING utf8mb4) = :mutex_bytes
    AND transition_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) AND owner_id <> ''

-- statement free
-- An eviction by force: the mutex is free at once.
UPDATE simba_mutex SET acquired_at = 0, ttl_at = 0, owner_id = '', transition_at = 0
WHERE mutex = :mutex AND BINARY CONVERT(mutex USING utf8mb4) = :mutex_bytes
    AND transition_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) AND owner_id <> ''

-- clause and_token
-- Behind an eviction of one tenure.
AND version = :token

-- clause and_owner
-- Behind an eviction of one owner.
AND (
    BINARY CONVERT(owner_id USING utf8mb4) = :id_bytes
    OR (ttl_at < 4294967296 AND BINARY CONVERT(owner_id USING utf8mb4) = :evicted_id_bytes)
)

-- clause and_cut_owner
-- The same for an id that was too long to be shown: how it begins.
AND (
    (
        BINARY CONVERT(owner_id USING utf8mb4) = :id_bytes
        OR (ttl_at < 4294967296 AND BINARY CONVERT(owner_id USING utf8mb4) = :evicted_id_bytes)
    )
    OR (
        LENGTH(BINARY CONVERT(owner_id USING utf8mb4)) > 128
        AND LEFT(BINARY CONVERT(owner_id USING utf8mb4), :cut_id_length) = :cut_id_bytes
    )
)

-- statement read
SELECT
    mutex,
    owner_id,
    IF(version + 1577836800 < acquired_at DIV 1000, 0, version),
    CAST(LEAST(transition_at, 9000000000000) AS SIGNED) - (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000),
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) - CAST(LEAST(acquired_at, 9000000000000) AS SIGNED),
    IF(ttl_at < 4294967296, ttl_at, NULL),
    0
FROM simba_mutex
WHERE mutex IN (:mutexes)

-- statement poll
-- The version of the row whose name is empty counts evictions.
SELECT
    mutex, owner_id,
    IF(mutex = '', version, IF(version + 1577836800 < acquired_at DIV 1000, 0, version)),
    CAST(LEAST(transition_at, 9000000000000) AS SIGNED) - (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000),
    0, NULL, 0
FROM simba_mutex
WHERE mutex IN (:mutexes)

-- statement list
SELECT
    mutex,
    owner_id,
    IF(version + 1577836800 < acquired_at DIV 1000, 0, version),
    CAST(LEAST(transition_at, 9000000000000) AS SIGNED) - (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000),
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) - CAST(LEAST(acquired_at, 9000000000000) AS SIGNED),
    IF(ttl_at < 4294967296, ttl_at, NULL),
    0
FROM simba_mutex
WHERE transition_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) AND owner_id <> '' AND mutex <> ''

-- statement list_note
SELECT
    mutex,
    owner_id,
    IF(version + 1577836800 < acquired_at DIV 1000, 0, version),
    CAST(LEAST(transition_at, 9000000000000) AS SIGNED) - (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000),
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) - CAST(LEAST(acquired_at, 9000000000000) AS SIGNED),
    IF(ttl_at < 4294967296, ttl_at, NULL),
    0, note, note_token, note_age
FROM simba_mutex
LEFT JOIN (
    SELECT
        mutex AS note_mutex, note, token AS note_token,
        (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) - CAST(LEAST(written_at, 9000000000000) AS SIGNED) AS note_age
    FROM simba_note
) AS n ON note_mutex = BINARY CONVERT(mutex USING utf8mb4)
WHERE transition_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) AND owner_id <> '' AND mutex <> ''

-- clause and_prefix
-- Behind a list: all whose names begin like that.
AND LEFT(BINARY CONVERT(mutex USING utf8mb4), :mutex_length) = :mutex_bytes

-- statement publish
-- The row of the mutex is locked until this is committed, so nobody takes it over between the comparison and the note.
-- A note that was overtaken by a later one of its tenure stays. With CLIENT_FOUND_ROWS that counts as a row, too; none
-- is counted if the tenure is over.
--
-- The time is that of the writing: UTC_TIMESTAMP is when the statement began, before it waited for the lock. SYSDATE is
-- read where the row is, in UTC by our session's time zone; a server that runs with --sysdate-is-now has nothing better
-- than the beginning.
INSERT INTO simba_note (mutex, token, serial, written_at, note)
SELECT
    :mutex_bytes, :token, :serial,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(3)) DIV 1000,
    :note
FROM simba_mutex
WHERE mutex = :mutex AND BINARY CONVERT(mutex USING utf8mb4) = :mutex_bytes
    AND BINARY CONVERT(owner_id USING utf8mb4) = :id_bytes
    AND version = :token
    AND transition_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)
    AND 1 = (
        SELECT 1
        UNION ALL
        SELECT 1 FROM information_schema.COLUMNS
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'simba_mutex' AND COLUMN_NAME = 'fencing_token'
    )
FOR UPDATE
ON DUPLICATE KEY UPDATE
    note = IF((token <> VALUES(token) OR serial < VALUES(serial)), VALUES(note), note),
    written_at = IF((token <> VALUES(token) OR serial < VALUES(serial)), VALUES(written_at), written_at),
    serial = IF((token <> VALUES(token) OR serial < VALUES(serial)), VALUES(serial), serial),
    token = VALUES(token)

-- statement read_note
-- Also of a mutex that has no row. The last row is the clock.
SELECT
    BINARY CONVERT(mutex USING utf8mb4),
    owner_id,
    IF(version + 1577836800 < acquired_at DIV 1000, 0, version),
    CAST(LEAST(transition_at, 9000000000000) AS SIGNED) - (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000),
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) - CAST(LEAST(acquired_at, 9000000000000) AS SIGNED),
    IF(ttl_at < 4294967296, ttl_at, NULL),
    0, NULL, 0, 0
FROM simba_mutex
WHERE mutex IN (:mutexes)
UNION ALL
SELECT
    mutex, '', 0, 0, 0, NULL, 0, note, token,
    (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) - CAST(LEAST(written_at, 9000000000000) AS SIGNED)
FROM simba_note
WHERE mutex IN (:mutexes)
UNION ALL
SELECT '', '', (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000), 0, 0, NULL, 0, NULL, 0, 0

-- statement digest
-- One number that changes when any owner does.
SELECT
    '', '',
    IFNULL(SUM(CRC32(CONCAT(mutex, '/', owner_id, '/', IF(version + 1577836800 < acquired_at DIV 1000, 0, version)))), 0),
    1, 0, NULL, 0
FROM simba_mutex
WHERE transition_at > (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000) AND owner_id <> ''

-- statement count_eviction
-- For owners, who all poll: one of them was evicted. The name is left out where it is longer than the 32 characters of
-- the JVM's first tables.
INSERT INTO simba_mutex (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
VALUES ('', 0, 0, 0, :short_mutex, 1)
ON DUPLICATE KEY UPDATE owner_id = VALUES(owner_id), version = version + 1

-- statement queue_try
SELECT :mutex, '', GET_LOCK(CONCAT('simba:', SHA1(CONCAT(DATABASE(), '/', :mutex_bytes))), 0), 0, 0, NULL, 0

-- statement queue_wait
SELECT :mutex, '', GET_LOCK(CONCAT('simba:', SHA1(CONCAT(DATABASE(), '/', :mutex_bytes))), :queue_wait_s), 0, 0, NULL, 0

-- statement queue_end
-- Who waits has it at once, so that it is not free in between.
SELECT
    :mutex, '',
    RELEASE_LOCK(CONCAT('simba:', SHA1(CONCAT(DATABASE(), '/', :mutex_bytes)))),
    IS_FREE_LOCK(CONCAT('simba:', SHA1(CONCAT(DATABASE(), '/', :mutex_bytes)))),
    0, NULL, 0

-- statement queue_room_of_mariadb
SELECT
    :mutex, '',
    2 * VARIABLE_VALUE < IF(@@max_user_connections > 0,
        LEAST(@@max_user_connections, @@max_connections),
        @@max_connections),
    0, 0, NULL, 0
FROM information_schema.global_status
WHERE UPPER(VARIABLE_NAME) = 'THREADS_CONNECTED'

-- statement queue_room_of_mysql
SELECT
    :mutex, '',
    2 * VARIABLE_VALUE < IF(@@max_user_connections > 0,
        LEAST(@@max_user_connections, @@max_connections),
        @@max_connections),
    0, 0, NULL, 0
FROM performance_schema.global_status
WHERE UPPER(VARIABLE_NAME) = 'THREADS_CONNECTED'
