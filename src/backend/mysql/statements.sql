-- statements.sql: what is sent to MariaDB and MySQL.
--
-- A section begins with its name. {name} stands for a part, which has to come before. In brackets are the kinds of
-- tables that a section is for, unless it is for all:
--
--   fenced      there is a fencing_token: as simba init makes it, and JVM Simba 4
--   versioned   there is none: the version is the token
--
-- A clause is put before or behind a statement, or between its parts. A name with a colon is a value:
--
--   :mutex, :id                  as text, _utf8mb4 x'...'; what comes from users is in hexadecimal
--   :mutex_bytes, :id_bytes      as bytes, x'...'
--   :mutexes                     all names, with commas between them
--   :lease                       ttl and transition, in ms, as :ttl is
--   :evicted_id_bytes            the id as the row of an evicted owner has it
--   :before_id_bytes, :before_token   of the tenure that ends when a mutex is passed on
--   :each ... :end               once for each mutex, with commas between them
--
-- In a statement that is prepared a value is ?, and bytes are BINARY ?.
--
-- docs/statements has each statement as a whole: after a change, run make statements.
--
-- The clock is the server's, as milliseconds since 1970 made from UTC_TIMESTAMP, so that no time zone and no change to
-- summer time can touch it. Names and ids are text for the index and bytes for every decision, whatever collation the
-- table has. Times are unsigned in the JVM's table, so they are never subtracted as they are.
--
-- In SET everything is assigned from left to right: what conditions read comes last, and @g keeps whether this very
-- row was changed.
--
-- What a statement tells of a mutex has seven columns: name, owner, token, ms left, age in ms, whether it is evicted,
-- and 1 if it was changed. Statements about notes tell three more: the note, its token, its age in ms. An UPDATE tells
-- how many rows it has met, and LAST_INSERT_ID(x) tells x with that.

-- part now
(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)

-- part token_column [versioned]
version
-- part token_column [fenced]
fencing_token

-- part token_columns [versioned]
version
-- part token_columns [fenced]
version, fencing_token

-- part version_of_new_row [versioned]
-- part version_of_new_row [fenced]
1,

-- part least_token [versioned]
-- A token is at least the clock, so that it does not fall when a row is deleted, or an old copy of the table is put in
-- its place: in us where there is a column for it. A version has to stay small for the JVM; there it is the seconds
-- since 2020.
CAST(TIMESTAMPDIFF(SECOND, '2020-01-01', UTC_TIMESTAMP()) AS UNSIGNED)
-- part least_token [fenced]
CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS UNSIGNED)

-- part still_without_tokens [versioned]
-- 1, or an error: the table has got the column for tokens since we have looked at it, and a client that goes on
-- without it would give out lower ones.
(
    SELECT 1
    UNION ALL
    SELECT 1 FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'simba_mutex' AND COLUMN_NAME = 'fencing_token'
)
-- part still_without_tokens [fenced]
1

-- part token [versioned]
-- The token to tell of. JVM 3 owners leave the one of an earlier tenure in the column, or, where there is none, count
-- on in the version with each renewal. Ours is at least the clock at which the tenure began.
IF(version + 1577836800 < acquired_at DIV 1000, 0, version)
-- part token [fenced]
IF(fencing_token >= 1000000000000000 AND fencing_token DIV 1000 < acquired_at, 0, fencing_token)

-- part left
-- A time that can be subtracted from, whatever a foreign hand has written.
CAST(LEAST(transition_at, 9000000000000) AS SIGNED) - {now}
-- part age
{now} - CAST(LEAST(acquired_at, 9000000000000) AS SIGNED)
-- part note_age
{now} - CAST(LEAST(written_at, 9000000000000) AS SIGNED)

-- part evicted
-- Below 2^32 it is no time, but the first character of the owner's id, which was changed by an eviction.
ttl_at < 4294967296

-- part answer_without_name
owner_id,
{token},
{left},
{age},
IF({evicted}, ttl_at, NULL)

-- part mutex_bytes
-- As we say them, whatever character set the table has.
BINARY CONVERT(mutex USING utf8mb4)
-- part owner_bytes
BINARY CONVERT(owner_id USING utf8mb4)

-- part this_row
mutex = :mutex AND {mutex_bytes} = :mutex_bytes

-- part this_owner
(
    {owner_bytes} = :id_bytes
    OR ({evicted} AND {owner_bytes} = :evicted_id_bytes)
)

-- part insert_row
INSERT INTO simba_mutex (mutex, acquired_at, ttl_at, transition_at, owner_id, {token_columns})

-- part set_next_token [versioned]
version = LAST_INSERT_ID(GREATEST(version + 1, {least_token})),
-- part set_next_token [fenced]
-- JVM peers can read a version of up to 2^31.
fencing_token = LAST_INSERT_ID(
    GREATEST(version + 1, fencing_token + 1, {least_token})),
version = LEAST(version + 1, 2147483647),

-- part set_next_token_if_changed [versioned]
version = IF(@g, GREATEST(version + 1, {least_token}), version),
-- part set_next_token_if_changed [fenced]
fencing_token = IF(
    @g, GREATEST(version + 1, fencing_token + 1, {least_token}),
    fencing_token),
version = IF(@g, LEAST(version + 1, 2147483647), version),

-- part same_name
BINARY mutex = BINARY VALUES(mutex)

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
    {set_next_token}
    owner_id = :id,
    acquired_at = {now},
    ttl_at = {now} + :ttl,
    transition_at = {now} + :lease
WHERE {this_row}
    AND transition_at <= {now}
    AND 1 = {still_without_tokens}

-- statement make
-- Takes a mutex that has no row.
{insert_row}
VALUES (
    :mutex,
    IF({still_without_tokens}, {now}, 0),
    {now} + :ttl,
    {now} + :lease,
    :id,
    {version_of_new_row} LAST_INSERT_ID({least_token})
)

-- statement contend
-- Many at once, by MariaDB: a row for each is inserted; the update says what becomes of one that is there. A missing
-- row is made, and taken by that.
{insert_row}
VALUES :each (
    :mutex,
    IF(@g := {still_without_tokens}, {now}, 0),
    {now} + :ttl,
    {now} + :lease,
    :id,
    {version_of_new_row} {least_token}
) :end
ON DUPLICATE KEY UPDATE
    owner_id = IF(
        @g := (
            {same_name}
            AND transition_at <= {now}
        ),
        VALUES(owner_id), owner_id),
    {set_next_token_if_changed}
    acquired_at = IF(@g, {now}, acquired_at),
    ttl_at = IF(@g, VALUES(ttl_at), ttl_at),
    transition_at = IF(@g, VALUES(transition_at), transition_at)
RETURNING
    mutex,
    {answer_without_name},
    @g

-- part same_tenure
{same_name} AND BINARY owner_id = BINARY VALUES(owner_id)
AND {token_column} = VALUES({token_column})

-- statement renew_one
UPDATE simba_mutex SET
    ttl_at = {now} + :ttl,
    transition_at = GREATEST(transition_at, {now} + :lease)
WHERE {this_row}
    AND {owner_bytes} = :id_bytes
    AND {token_column} = :token
    AND transition_at > {now}

-- statement renew
-- Many at once, by MariaDB. The row that is inserted if there is none has ended in 1970.
{insert_row}
VALUES :each (
    :mutex, IF(@g := 0, 0, 0), :ttl, :lease, :id, {version_of_new_row} :token
) :end
ON DUPLICATE KEY UPDATE
    ttl_at = IF(
        @g := (
            {same_tenure}
            AND transition_at > {now}
        ),
        {now} + VALUES(ttl_at), ttl_at),
    transition_at = IF(
        @g, GREATEST(transition_at, {now} + VALUES(transition_at)),
        transition_at)
RETURNING
    mutex,
    {answer_without_name},
    @g

-- statement release_one
UPDATE simba_mutex SET acquired_at = 0, transition_at = 0, owner_id = '', ttl_at = 0
WHERE {this_row}
    AND {token_column} = :token
    AND {this_owner}

-- statement release
-- Many at once, by MariaDB. Of an evicted id the first character differs.
{insert_row}
VALUES :each (
    :mutex, IF(@g := 0, 0, 0), 0, 0, :id, {version_of_new_row} :token
) :end
ON DUPLICATE KEY UPDATE
    acquired_at = IF(
        @g := (
            {same_name} AND {token_column} = VALUES({token_column})
            AND (
                BINARY owner_id = BINARY VALUES(owner_id)
                OR (
                    {evicted} AND LEFT(owner_id, 1) IN ('~', '!')
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
    {answer_without_name},
    @g

-- statement pass
-- The next tenure begins where the one before ends.
UPDATE simba_mutex SET
    {set_next_token}
    owner_id = :id,
    acquired_at = {now},
    ttl_at = {now} + :ttl,
    transition_at = {now} + :lease
WHERE {this_row}
    AND {token_column} = :before_token
    AND {owner_bytes} = :before_id_bytes
    AND 1 = {still_without_tokens}

-- statement evict
-- Gracefully: the owner's id changes, so that neither ours nor a JVM owner can renew, and the lease runs out. ttl_at
-- says that it has been done, and keeps the character.
UPDATE simba_mutex SET
    ttl_at = IF(
        @g := NOT ({evicted}),
        CONV(HEX(CONVERT(LEFT(owner_id, 1) USING utf8mb4)), 16, 10), ttl_at),
    owner_id = IF(
        @g,
        CONCAT(IF(LEFT(owner_id, 1) = '~', '!', '~'), SUBSTRING(owner_id, 2)), owner_id)
WHERE {this_row}
    AND transition_at > {now} AND owner_id <> ''

-- statement free
-- An eviction by force: the mutex is free at once.
UPDATE simba_mutex SET acquired_at = 0, ttl_at = 0, owner_id = '', transition_at = 0
WHERE {this_row}
    AND transition_at > {now} AND owner_id <> ''

-- clause and_token
-- Behind an eviction of one tenure.
AND {token_column} = :token

-- clause and_owner
-- Behind an eviction of one owner.
AND {this_owner}

-- clause and_cut_owner
-- The same for an id that was too long to be shown: how it begins.
AND (
    {this_owner}
    OR (
        LENGTH({owner_bytes}) > 128
        AND LEFT({owner_bytes}, :cut_id_length) = :cut_id_bytes
    )
)

-- statement read
SELECT
    mutex,
    {answer_without_name},
    0
FROM simba_mutex
WHERE mutex IN (:mutexes)

-- statement poll
-- The version of the row whose name is empty counts evictions.
SELECT
    mutex, owner_id,
    IF(mutex = '', version, {token}),
    {left},
    0, NULL, 0
FROM simba_mutex
WHERE mutex IN (:mutexes)

-- statement list
SELECT
    mutex,
    {answer_without_name},
    0
FROM simba_mutex
WHERE transition_at > {now} AND owner_id <> '' AND mutex <> ''

-- statement list_note
SELECT
    mutex,
    {answer_without_name},
    0, note, note_token, note_age
FROM simba_mutex
LEFT JOIN (
    SELECT
        mutex AS note_mutex, note, token AS note_token,
        {note_age} AS note_age
    FROM simba_note
) AS n ON note_mutex = {mutex_bytes}
WHERE transition_at > {now} AND owner_id <> '' AND mutex <> ''

-- clause and_prefix
-- Behind a list: all whose names begin like that.
AND LEFT({mutex_bytes}, :mutex_length) = :mutex_bytes

-- part newer
(token <> VALUES(token) OR serial < VALUES(serial))

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
WHERE {this_row}
    AND {owner_bytes} = :id_bytes
    AND {token_column} = :token
    AND transition_at > {now}
    AND 1 = {still_without_tokens}
FOR UPDATE
ON DUPLICATE KEY UPDATE
    note = IF({newer}, VALUES(note), note),
    written_at = IF({newer}, VALUES(written_at), written_at),
    serial = IF({newer}, VALUES(serial), serial),
    token = VALUES(token)

-- statement read_note
-- Also of a mutex that has no row. The last row is the clock.
SELECT
    {mutex_bytes},
    {answer_without_name},
    0, NULL, 0, 0
FROM simba_mutex
WHERE mutex IN (:mutexes)
UNION ALL
SELECT
    mutex, '', 0, 0, 0, NULL, 0, note, token,
    {note_age}
FROM simba_note
WHERE mutex IN (:mutexes)
UNION ALL
SELECT '', '', {now}, 0, 0, NULL, 0, NULL, 0, 0

-- statement digest
-- One number that changes when any owner does.
SELECT
    '', '',
    IFNULL(SUM(CRC32(CONCAT(mutex, '/', owner_id, '/', {token}))), 0),
    1, 0, NULL, 0
FROM simba_mutex
WHERE transition_at > {now} AND owner_id <> ''

-- statement count_eviction
-- For owners, who all poll: one of them was evicted. The name is left out where it is longer than the 32 characters of
-- the JVM's first tables.
INSERT INTO simba_mutex (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
VALUES ('', 0, 0, 0, :short_mutex, 1)
ON DUPLICATE KEY UPDATE owner_id = VALUES(owner_id), version = version + 1

-- part queue_lock
-- These names are shared by the whole server, and at most 64 characters long.
CONCAT('simba:', SHA1(CONCAT(DATABASE(), '/', :mutex_bytes)))

-- statement queue_try
SELECT :mutex, '', GET_LOCK({queue_lock}, 0), 0, 0, NULL, 0

-- statement queue_wait
SELECT :mutex, '', GET_LOCK({queue_lock}, :queue_wait_s), 0, 0, NULL, 0

-- statement queue_end
-- Who waits has it at once, so that it is not free in between.
SELECT
    :mutex, '',
    RELEASE_LOCK({queue_lock}),
    IS_FREE_LOCK({queue_lock}),
    0, NULL, 0

-- part room_for_waiters
-- Connections that only wait leave half of the server's, or of the user's, to others.
2 * VARIABLE_VALUE < IF(@@max_user_connections > 0,
    LEAST(@@max_user_connections, @@max_connections),
    @@max_connections)

-- statement queue_room_of_mariadb
SELECT
    :mutex, '',
    {room_for_waiters},
    0, 0, NULL, 0
FROM information_schema.global_status
WHERE UPPER(VARIABLE_NAME) = 'THREADS_CONNECTED'

-- statement queue_room_of_mysql
SELECT
    :mutex, '',
    {room_for_waiters},
    0, 0, NULL, 0
FROM performance_schema.global_status
WHERE UPPER(VARIABLE_NAME) = 'THREADS_CONNECTED'
