-- Made of src/backend/postgres/statements.sql by the build, for a table of the kind 'versioned'; see there.

-- statement contend_one: mutex, id, ttl, lease
-- Takes the mutex if it is free; the lease is ttl and transition. One contender wins most of the time: what is not
-- told is read.
INSERT INTO simba_mutex AS t (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
SELECT
    $1::text, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + $3::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + $4::bigint,
    $2::text,
    floor(date_part('epoch', clock_timestamp()) - 1577836800)::bigint
WHERE NOT EXISTS (
    SELECT FROM simba_mutex AS held
    WHERE held.mutex = $1::text AND held.transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
)
AND 1 = (
    SELECT 1
    UNION ALL
    SELECT 1 FROM pg_attribute
    WHERE attrelid = to_regclass('simba_mutex') AND attname = 'fencing_token' AND NOT attisdropped
)
ON CONFLICT (mutex) DO UPDATE SET
    acquired_at = floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    ttl_at = floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + $3::bigint,
    transition_at = floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + $4::bigint,
    owner_id = $2::text,
    version = greatest(t.version + 1, floor(date_part('epoch', clock_timestamp()) - 1577836800)::bigint)
WHERE t.transition_at <= floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
RETURNING
    t.mutex, t.owner_id, t.version,
    t.transition_at - floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - t.acquired_at,
    CASE WHEN t.ttl_at < 4294967296 THEN t.ttl_at END,
    1,
    CASE WHEN EXISTS (
        SELECT FROM simba_mutex AS observers
        WHERE observers.mutex = '' AND observers.transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
    ) THEN pg_notify('simba', t.mutex)::text END

-- statement contend, for many: mutex, id, ttl, lease
-- A contender that finds it held, and most do, only reads: a lock on the row would hold up its owner. What is not told
-- was free at first and then another's.
WITH asked AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS asked (mutex, id, ttl, lease)
), granted AS (
    INSERT INTO simba_mutex AS t (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
    SELECT
        mutex, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
        floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + ttl,
        floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + lease,
        id,
        floor(date_part('epoch', clock_timestamp()) - 1577836800)::bigint
    FROM asked
    WHERE NOT EXISTS (
        SELECT FROM simba_mutex AS held
        WHERE held.mutex = asked.mutex AND held.transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
    )
    AND 1 = (
        SELECT 1
        UNION ALL
        SELECT 1 FROM pg_attribute
        WHERE attrelid = to_regclass('simba_mutex') AND attname = 'fencing_token' AND NOT attisdropped
    )
    ON CONFLICT (mutex) DO UPDATE SET
        acquired_at = floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
        ttl_at = floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + EXCLUDED.ttl_at - EXCLUDED.acquired_at,
        transition_at = floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + EXCLUDED.transition_at - EXCLUDED.acquired_at,
        owner_id = EXCLUDED.owner_id,
        version = greatest(t.version + 1, floor(date_part('epoch', clock_timestamp()) - 1577836800)::bigint)
    WHERE t.transition_at <= floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
    RETURNING t.*
)
SELECT
    t.mutex, t.owner_id, t.version,
    t.transition_at - floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - t.acquired_at,
    CASE WHEN t.ttl_at < 4294967296 THEN t.ttl_at END,
    1,
    CASE WHEN EXISTS (
        SELECT FROM simba_mutex AS observers
        WHERE observers.mutex = '' AND observers.transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
    ) THEN pg_notify('simba', t.mutex)::text END
FROM granted AS t
UNION ALL
SELECT
    t.mutex, t.owner_id, t.version,
    t.transition_at - floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - t.acquired_at,
    CASE WHEN t.ttl_at < 4294967296 THEN t.ttl_at END,
    0,
    NULL
FROM simba_mutex AS t, asked
WHERE t.mutex = asked.mutex AND t.transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
    AND NOT EXISTS (SELECT FROM granted WHERE granted.mutex = asked.mutex)

-- statement renew_one: mutex, id, token, ttl, lease
UPDATE simba_mutex AS t SET
    ttl_at = floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + $4::bigint,
    transition_at = greatest(transition_at, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + $5::bigint)
WHERE mutex = $1::text AND owner_id = $2::text AND version = $3::bigint
    AND transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
    AND 1 = (
        SELECT 1
        UNION ALL
        SELECT 1 FROM pg_attribute
        WHERE attrelid = to_regclass('simba_mutex') AND attname = 'fencing_token' AND NOT attisdropped
    )
RETURNING
    t.mutex, t.owner_id, t.version,
    t.transition_at - floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - t.acquired_at,
    CASE WHEN t.ttl_at < 4294967296 THEN t.ttl_at END,
    1

-- statement renew, for many: mutex, id, token, ttl, lease
INSERT INTO simba_mutex AS t (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
SELECT mutex, 0, ttl, lease, id,  token
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
    AS asked (mutex, id, token, ttl, lease)
WHERE 1 = 1
    AND 1 = (
        SELECT 1
        UNION ALL
        SELECT 1 FROM pg_attribute
        WHERE attrelid = to_regclass('simba_mutex') AND attname = 'fencing_token' AND NOT attisdropped
    )
ON CONFLICT (mutex) DO UPDATE SET
    ttl_at = floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + EXCLUDED.ttl_at,
    transition_at = greatest(t.transition_at, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + EXCLUDED.transition_at)
WHERE t.owner_id = EXCLUDED.owner_id AND t.version = EXCLUDED.version
    AND t.transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
RETURNING
    t.mutex, t.owner_id, t.version,
    t.transition_at - floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - t.acquired_at,
    CASE WHEN t.ttl_at < 4294967296 THEN t.ttl_at END,
    (t.transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint)::int

-- statement release_one: mutex, id, token, evicted_id
UPDATE simba_mutex AS t SET acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = ''
WHERE mutex = $1::text AND version = $3::bigint
    AND (owner_id = $2::text OR (ttl_at < 4294967296 AND owner_id = $4::text))
    AND 1 = (
        SELECT 1
        UNION ALL
        SELECT 1 FROM pg_attribute
        WHERE attrelid = to_regclass('simba_mutex') AND attname = 'fencing_token' AND NOT attisdropped
    )
RETURNING
    mutex, '', 0, 0, 0, NULL,
    1,
    pg_notify('simba', mutex)

-- statement release, for many: mutex, id, token, evicted_id
WITH released AS (
    UPDATE simba_mutex AS t SET acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = ''
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) AS asked (mutex, id, token, evicted_id)
    WHERE t.mutex = asked.mutex AND t.version = asked.token
        AND (t.owner_id = asked.id OR (t.ttl_at < 4294967296 AND t.owner_id = asked.evicted_id))
        AND 1 = (
            SELECT 1
            UNION ALL
            SELECT 1 FROM pg_attribute
            WHERE attrelid = to_regclass('simba_mutex') AND attname = 'fencing_token' AND NOT attisdropped
        )
    RETURNING t.*
)
SELECT
    mutex, '', 0, 0, 0, NULL,
    1,
    pg_notify('simba', mutex)
FROM released AS t

-- statement evict: mutex, token, id, evicted_id, cut_id
-- Gracefully: the owner's id changes, so that it cannot renew, and the lease runs out. ttl_at says that it has been
-- done, and keeps the character. Token 0 and id '' are any; cut_id is the beginning of an id that was too long to be
-- shown.
WITH evicted AS (
    UPDATE simba_mutex AS t SET
        ttl_at = CASE
            WHEN ttl_at < 4294967296 THEN ttl_at
            ELSE ('x' || lpad(encode(convert_to(left(owner_id,
                CASE
                    WHEN getdatabaseencoding() <> 'SQL_ASCII' THEN 1
                    WHEN ascii(owner_id) < 192 THEN 1
                    WHEN ascii(owner_id) < 224 THEN 2
                    WHEN ascii(owner_id) < 240 THEN 3
                    ELSE 4
                END), 'UTF8'), 'hex'), 8, '0'))::bit(32)::bigint
        END,
        owner_id = CASE
            WHEN ttl_at < 4294967296 THEN owner_id
            WHEN left(owner_id, 1) = '~' THEN '!' || substr(owner_id, 2)
            ELSE '~' || substr(owner_id, 1 +
                CASE
                    WHEN getdatabaseencoding() <> 'SQL_ASCII' THEN 1
                    WHEN ascii(owner_id) < 192 THEN 1
                    WHEN ascii(owner_id) < 224 THEN 2
                    WHEN ascii(owner_id) < 240 THEN 3
                    ELSE 4
                END)
        END
    WHERE mutex = $1::text AND transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint AND owner_id <> ''
        AND ($2::bigint = 0 OR version = $2::bigint)
        AND (
            $3::text = '' OR owner_id = $3::text
            OR (ttl_at < 4294967296 AND owner_id = $4::text)
            OR ($5::text <> '' AND octet_length(owner_id) > 128 AND starts_with(owner_id, $5::text))
        )
    RETURNING mutex
)
SELECT mutex, '', 0, 0, 0, NULL, 1, pg_notify('simba', mutex) FROM evicted

-- statement free: mutex, token, id, evicted_id, cut_id
-- An eviction by force: the mutex is free at once.
WITH evicted AS (
    UPDATE simba_mutex AS t SET acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = ''
    WHERE mutex = $1::text AND transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint AND owner_id <> ''
        AND ($2::bigint = 0 OR version = $2::bigint)
        AND (
            $3::text = '' OR owner_id = $3::text
            OR (ttl_at < 4294967296 AND owner_id = $4::text)
            OR ($5::text <> '' AND octet_length(owner_id) > 128 AND starts_with(owner_id, $5::text))
        )
    RETURNING mutex
)
SELECT mutex, '', 0, 0, 0, NULL, 1, pg_notify('simba', mutex) FROM evicted

-- statement read, for many: mutex
SELECT
    t.mutex, t.owner_id, t.version,
    t.transition_at - floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - t.acquired_at,
    CASE WHEN t.ttl_at < 4294967296 THEN t.ttl_at END,
    0
FROM simba_mutex AS t
WHERE mutex = ANY ($1::text[])

-- statement poll, for many: mutex
-- The version of the row whose name is empty counts evictions.
SELECT
    mutex, owner_id, CASE WHEN mutex = '' THEN version ELSE version END,
    transition_at - floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    0, NULL,
    0
FROM simba_mutex AS t
WHERE mutex = ANY ($1::text[])

-- statement list: mutex
-- All whose names begin like that.
SELECT
    t.mutex, t.owner_id, t.version,
    t.transition_at - floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - t.acquired_at,
    CASE WHEN t.ttl_at < 4294967296 THEN t.ttl_at END,
    0
FROM simba_mutex AS t
WHERE t.transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint AND t.owner_id <> '' AND t.mutex <> '' AND starts_with(t.mutex, $1::text)

-- statement list_note: mutex
SELECT
    t.mutex, t.owner_id, t.version,
    t.transition_at - floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - t.acquired_at,
    CASE WHEN t.ttl_at < 4294967296 THEN t.ttl_at END,
    0, n.note, n.token, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - n.written_at
FROM simba_mutex AS t
LEFT JOIN :notes_table AS n ON n.mutex = t.mutex COLLATE "C"
WHERE t.transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint AND t.owner_id <> '' AND t.mutex <> '' AND starts_with(t.mutex, $1::text)

-- statement publish: mutex, id, token, serial, note
-- The row of the mutex is locked until this is committed, so nobody takes it over between the comparison and the note.
-- A note that was overtaken by a later one of its tenure stays.
WITH owned AS (
    SELECT t.mutex FROM simba_mutex AS t
    WHERE t.mutex = $1::text AND t.owner_id = $2::text AND t.version = $3::bigint
        AND t.transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
        AND 1 = (
            SELECT 1
            UNION ALL
            SELECT 1 FROM pg_attribute
            WHERE attrelid = to_regclass('simba_mutex') AND attname = 'fencing_token' AND NOT attisdropped
        )
    FOR UPDATE
), written AS (
    INSERT INTO :notes_table AS n (mutex, token, serial, written_at, note)
    SELECT $1::text, $3::bigint, $4::bigint, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint, $5::text FROM owned
    ON CONFLICT (mutex) DO UPDATE SET
        token = EXCLUDED.token, serial = EXCLUDED.serial, written_at = EXCLUDED.written_at, note = EXCLUDED.note
    WHERE n.token <> EXCLUDED.token OR n.serial < EXCLUDED.serial
)
SELECT mutex, '', 0, 0, 0, NULL, 1 FROM owned

-- statement read_note, for many: mutex
-- Also of a mutex that has no row. The last row is the clock.
SELECT
    t.mutex, t.owner_id, t.version,
    t.transition_at - floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - t.acquired_at,
    CASE WHEN t.ttl_at < 4294967296 THEN t.ttl_at END,
    0,
    NULL::text, 0::bigint, 0::bigint
FROM simba_mutex AS t
WHERE mutex = ANY ($1::text[])
UNION ALL
SELECT mutex, '', 0, 0, 0, NULL, 0, note, token, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - written_at
FROM :notes_table
WHERE mutex = ANY ($1::text[])
UNION ALL
SELECT '', '', floor(date_part('epoch', clock_timestamp()) * 1000)::bigint, 0, 0, NULL, 0, NULL, 0, 0

-- statement digest
-- One number that changes when any owner does.
SELECT
    '', '',
    abs(coalesce(sum(hashtext(mutex || '/' || owner_id || '/' || version)::bigint), 0)),
    1, 0, NULL, 0
FROM simba_mutex
WHERE transition_at > floor(date_part('epoch', clock_timestamp()) * 1000)::bigint AND owner_id <> '' AND mutex <> ''

-- statement count_eviction: mutex
-- For owners who cannot listen: one of them was evicted.
INSERT INTO simba_mutex AS t (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
VALUES ('', 0, 0, 0, $1::text, 1)
ON CONFLICT (mutex) DO UPDATE SET owner_id = EXCLUDED.owner_id, version = (t.version + 1) % 2147483647

-- statement observe: observed_ms
-- For so long from now on, acquisitions are told, too.
INSERT INTO simba_mutex AS t (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
VALUES ('', 0, 0, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + $1::bigint, '', 0)
ON CONFLICT (mutex) DO UPDATE SET transition_at = floor(date_part('epoch', clock_timestamp()) * 1000)::bigint + $1::bigint

-- statement mark, for many: mutex
-- There are no marks; each release is told.
SELECT mutex, '', 0, 0, 0, NULL, 0 FROM simba_mutex WHERE mutex = ANY ($1::text[])

-- statement listen
LISTEN simba

-- statement make_notes
CREATE TABLE IF NOT EXISTS :notes_table :notes_columns
