-- statements.sql: what is sent to PostgreSQL.
--
-- A section begins with its name. {name} stands for a part, which has to come before. In brackets are the kinds of
-- tables that a section is for, unless it is for all:
--
--   marked      as simba init makes it. Where somebody waits, the version is above the token: a mark
--   fenced      there is a fencing_token, but the version has 32 bits: no marks
--   versioned   there is no fencing_token: the version is the token
--
-- Behind the name of a statement are its parameters, $1 and so on. For many: each is an array, with a value for each
-- mutex, in the order of their names. A value with a colon is put into the text: :notes_table is simba_note in the
-- schema that simba_mutex is in, since two schemas must not have one each; schema_note.sql has :notes_columns.
--
-- docs/statements has each statement as a whole: after a change, run make statements.
--
-- The clock is the server's at the moment of the comparison, clock_timestamp(), and not the beginning of the
-- statement: that may have waited for a lock. So also what is written is computed where a row is changed, and not
-- where the statement begins.
--
-- Many rows are changed by INSERT ... ON CONFLICT in the order in which they are given, by name, so that two clients
-- do not wait for each other. A row that is made by that, because somebody has deleted it, has ended in 1970.
--
-- What a statement tells of a mutex has seven columns: name, owner, token, ms left, age in ms, whether it is evicted,
-- what was found: 0 nothing; 1 changed; 2 nobody has left a mark; 3 changed, and there is a mark. An eighth column
-- only does something. Statements about notes tell three more: the note, its token, its age in ms.

-- part now
floor(date_part('epoch', clock_timestamp()) * 1000)::bigint

-- part token_column [versioned]
version
-- part token_column [fenced marked]
fencing_token

-- part token_columns [versioned]
version
-- part token_columns [fenced marked]
version, fencing_token

-- part version_of_new_row [versioned]
-- part version_of_new_row [fenced marked]
1,

-- part least_token [versioned]
-- A token is at least the clock, so that it does not fall when a row is deleted, or an old copy of the table is put in
-- its place: in us where there is a column for it. A version that is the token may be an int; there it is the seconds
-- since 2020.
floor(date_part('epoch', clock_timestamp()) - 1577836800)::bigint
-- part least_token [fenced marked]
floor(date_part('epoch', clock_timestamp()) * 1000000)::bigint

-- part set_next_token [versioned]
-- A mark is a version above the token, so the version of a new tenure is not: its clock is read first.
version = greatest(t.version + 1, {least_token})
-- part set_next_token [fenced]
version = least(t.version::bigint + 1, 2147483647),
fencing_token = greatest(
    t.version::bigint + 1, t.fencing_token + 1, {least_token})
-- part set_next_token [marked]
version = greatest(t.version, t.fencing_token) + 1,
fencing_token = greatest(
    t.version + 1, t.fencing_token + 1, {least_token})

-- part and_still_without_tokens [versioned]
-- An error, if the table has got the column for tokens since we have looked at it: a client that goes on without it
-- would give out lower ones.
AND 1 = (
    SELECT 1
    UNION ALL
    SELECT 1 FROM pg_attribute
    WHERE attrelid = to_regclass('simba_mutex') AND attname = 'fencing_token' AND NOT attisdropped
)
-- part and_still_without_tokens [fenced marked]

-- part evicted
-- Below 2^32 it is no time, but the first character of the owner's id, which was changed by an eviction.
ttl_at < 4294967296

-- part answer
t.mutex, t.owner_id, t.{token_column},
t.transition_at - {now},
{now} - t.acquired_at,
CASE WHEN t.{evicted} THEN t.ttl_at END

-- part is_marked [versioned fenced]
0
-- part is_marked [marked]
CASE WHEN t.version > t.fencing_token THEN 0 ELSE 2 END

-- part tell_observers
-- Observers announce themselves in the row whose name is empty.
CASE WHEN EXISTS (
    SELECT FROM simba_mutex AS observers
    WHERE observers.mutex = '' AND observers.transition_at > {now}
) THEN pg_notify('simba', t.mutex)::text END

-- part tell_waiters [versioned fenced]
-- NOTIFY follows what has happened, in the same transaction: who is told finds it so. All that notify wait for each
-- other until they are committed, so a release does it only if somebody has left a mark that he waits.
1,
pg_notify('simba', mutex)
-- part tell_waiters [marked]
CASE WHEN version > fencing_token THEN 3 ELSE 1 END,
CASE WHEN version > fencing_token THEN pg_notify('simba', mutex)::text
ELSE {tell_observers} END

-- part insert_row
INSERT INTO simba_mutex AS t (mutex, acquired_at, ttl_at, transition_at, owner_id, {token_columns})

-- part nobody
acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = ''

-- statement contend_one: mutex, id, ttl, lease
-- Takes the mutex if it is free; the lease is ttl and transition. One contender wins most of the time: what is not
-- told is read.
{insert_row}
SELECT
    $1::text, {now},
    {now} + $3::bigint,
    {now} + $4::bigint,
    $2::text,
    {version_of_new_row} {least_token}
WHERE NOT EXISTS (
    SELECT FROM simba_mutex AS held
    WHERE held.mutex = $1::text AND held.transition_at > {now}
)
{and_still_without_tokens}
ON CONFLICT (mutex) DO UPDATE SET
    acquired_at = {now},
    ttl_at = {now} + $3::bigint,
    transition_at = {now} + $4::bigint,
    owner_id = $2::text,
    {set_next_token}
WHERE t.transition_at <= {now}
RETURNING
    {answer},
    1,
    {tell_observers}

-- statement contend, for many: mutex, id, ttl, lease
-- A contender that finds it held, and most do, only reads: a lock on the row would hold up its owner. What is not told
-- was free at first and then another's.
WITH asked AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS asked (mutex, id, ttl, lease)
), granted AS (
    {insert_row}
    SELECT
        mutex, {now},
        {now} + ttl,
        {now} + lease,
        id,
        {version_of_new_row} {least_token}
    FROM asked
    WHERE NOT EXISTS (
        SELECT FROM simba_mutex AS held
        WHERE held.mutex = asked.mutex AND held.transition_at > {now}
    )
    {and_still_without_tokens}
    ON CONFLICT (mutex) DO UPDATE SET
        acquired_at = {now},
        ttl_at = {now} + EXCLUDED.ttl_at - EXCLUDED.acquired_at,
        transition_at = {now} + EXCLUDED.transition_at - EXCLUDED.acquired_at,
        owner_id = EXCLUDED.owner_id,
        {set_next_token}
    WHERE t.transition_at <= {now}
    RETURNING t.*
)
SELECT
    {answer},
    1,
    {tell_observers}
FROM granted AS t
UNION ALL
SELECT
    {answer},
    {is_marked},
    NULL
FROM simba_mutex AS t, asked
WHERE t.mutex = asked.mutex AND t.transition_at > {now}
    AND NOT EXISTS (SELECT FROM granted WHERE granted.mutex = asked.mutex)

-- statement renew_one: mutex, id, token, ttl, lease
UPDATE simba_mutex AS t SET
    ttl_at = {now} + $4::bigint,
    transition_at = greatest(transition_at, {now} + $5::bigint)
WHERE mutex = $1::text AND owner_id = $2::text AND {token_column} = $3::bigint
    AND transition_at > {now}
    {and_still_without_tokens}
RETURNING
    {answer},
    1

-- statement renew, for many: mutex, id, token, ttl, lease
{insert_row}
SELECT mutex, 0, ttl, lease, id, {version_of_new_row} token
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
    AS asked (mutex, id, token, ttl, lease)
WHERE 1 = 1
    {and_still_without_tokens}
ON CONFLICT (mutex) DO UPDATE SET
    ttl_at = {now} + EXCLUDED.ttl_at,
    transition_at = greatest(t.transition_at, {now} + EXCLUDED.transition_at)
WHERE t.owner_id = EXCLUDED.owner_id AND t.{token_column} = EXCLUDED.{token_column}
    AND t.transition_at > {now}
RETURNING
    {answer},
    (t.transition_at > {now})::int

-- statement release_one: mutex, id, token, evicted_id
UPDATE simba_mutex AS t SET {nobody}
WHERE mutex = $1::text AND {token_column} = $3::bigint
    AND (owner_id = $2::text OR ({evicted} AND owner_id = $4::text))
    {and_still_without_tokens}
RETURNING
    mutex, '', 0, 0, 0, NULL,
    {tell_waiters}

-- statement release, for many: mutex, id, token, evicted_id
WITH released AS (
    UPDATE simba_mutex AS t SET {nobody}
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) AS asked (mutex, id, token, evicted_id)
    WHERE t.mutex = asked.mutex AND t.{token_column} = asked.token
        AND (t.owner_id = asked.id OR (t.{evicted} AND t.owner_id = asked.evicted_id))
        {and_still_without_tokens}
    RETURNING t.*
)
SELECT
    mutex, '', 0, 0, 0, NULL,
    {tell_waiters}
FROM released AS t

-- part next_token
greatest(t.version + 1, t.fencing_token + 1, clock.us)

-- statement pass: mutex, before_id, before_token, id, ttl, lease [marked]
-- The next tenure begins where the one before ends, and whoever else waits goes on waiting: its mark stays. The clock
-- of the token is read once, so that a mark is above it.
UPDATE simba_mutex AS t SET
    acquired_at = {now},
    ttl_at = {now} + $5::bigint,
    transition_at = {now} + $6::bigint,
    owner_id = $4::text,
    fencing_token = {next_token},
    version = CASE WHEN t.version > t.fencing_token THEN {next_token} + 1
        ELSE greatest(t.version, t.fencing_token) + 1 END
FROM (SELECT {least_token} AS us) AS clock
WHERE mutex = $1::text AND owner_id = $2::text AND fencing_token = $3::bigint
RETURNING
    {answer},
    CASE WHEN version > fencing_token THEN 3 ELSE 1 END,
    {tell_observers}

-- part length_of_first
-- The length of the owner's first character, in characters. A database without an encoding takes each byte of our
-- UTF-8 for one; there ascii() is the first byte.
CASE
    WHEN getdatabaseencoding() <> 'SQL_ASCII' THEN 1
    WHEN ascii(owner_id) < 192 THEN 1
    WHEN ascii(owner_id) < 224 THEN 2
    WHEN ascii(owner_id) < 240 THEN 3
    ELSE 4
END

-- part of_this_owner
WHERE mutex = $1::text AND transition_at > {now} AND owner_id <> ''
    AND ($2::bigint = 0 OR {token_column} = $2::bigint)
    AND (
        $3::text = '' OR owner_id = $3::text
        OR ({evicted} AND owner_id = $4::text)
        OR ($5::text <> '' AND octet_length(owner_id) > 128 AND starts_with(owner_id, $5::text))
    )

-- statement evict: mutex, token, id, evicted_id, cut_id
-- Gracefully: the owner's id changes, so that it cannot renew, and the lease runs out. ttl_at says that it has been
-- done, and keeps the character. Token 0 and id '' are any; cut_id is the beginning of an id that was too long to be
-- shown.
WITH evicted AS (
    UPDATE simba_mutex AS t SET
        ttl_at = CASE
            WHEN {evicted} THEN ttl_at
            ELSE ('x' || lpad(encode(convert_to(left(owner_id,
                {length_of_first}), 'UTF8'), 'hex'), 8, '0'))::bit(32)::bigint
        END,
        owner_id = CASE
            WHEN {evicted} THEN owner_id
            WHEN left(owner_id, 1) = '~' THEN '!' || substr(owner_id, 2)
            ELSE '~' || substr(owner_id, 1 +
                {length_of_first})
        END
    {of_this_owner}
    RETURNING mutex
)
SELECT mutex, '', 0, 0, 0, NULL, 1, pg_notify('simba', mutex) FROM evicted

-- statement free: mutex, token, id, evicted_id, cut_id
-- An eviction by force: the mutex is free at once.
WITH evicted AS (
    UPDATE simba_mutex AS t SET {nobody}
    {of_this_owner}
    RETURNING mutex
)
SELECT mutex, '', 0, 0, 0, NULL, 1, pg_notify('simba', mutex) FROM evicted

-- statement read, for many: mutex
SELECT
    {answer},
    {is_marked}
FROM simba_mutex AS t
WHERE mutex = ANY ($1::text[])

-- statement poll, for many: mutex
-- The version of the row whose name is empty counts evictions.
SELECT
    mutex, owner_id, CASE WHEN mutex = '' THEN version ELSE {token_column} END,
    transition_at - {now},
    0, NULL,
    {is_marked}
FROM simba_mutex AS t
WHERE mutex = ANY ($1::text[])

-- part that_is_held
WHERE t.transition_at > {now} AND t.owner_id <> '' AND t.mutex <> '' AND starts_with(t.mutex, $1::text)

-- statement list: mutex
-- All whose names begin like that.
SELECT
    {answer},
    0
FROM simba_mutex AS t
{that_is_held}

-- statement list_note: mutex
SELECT
    {answer},
    0, n.note, n.token, {now} - n.written_at
FROM simba_mutex AS t
LEFT JOIN :notes_table AS n ON n.mutex = t.mutex COLLATE "C"
{that_is_held}

-- statement publish: mutex, id, token, serial, note
-- The row of the mutex is locked until this is committed, so nobody takes it over between the comparison and the note.
-- A note that was overtaken by a later one of its tenure stays.
WITH owned AS (
    SELECT t.mutex FROM simba_mutex AS t
    WHERE t.mutex = $1::text AND t.owner_id = $2::text AND t.{token_column} = $3::bigint
        AND t.transition_at > {now}
        {and_still_without_tokens}
    FOR UPDATE
), written AS (
    INSERT INTO :notes_table AS n (mutex, token, serial, written_at, note)
    SELECT $1::text, $3::bigint, $4::bigint, {now}, $5::text FROM owned
    ON CONFLICT (mutex) DO UPDATE SET
        token = EXCLUDED.token, serial = EXCLUDED.serial, written_at = EXCLUDED.written_at, note = EXCLUDED.note
    WHERE n.token <> EXCLUDED.token OR n.serial < EXCLUDED.serial
)
SELECT mutex, '', 0, 0, 0, NULL, 1 FROM owned

-- statement read_note, for many: mutex
-- Also of a mutex that has no row. The last row is the clock.
SELECT
    {answer},
    {is_marked},
    NULL::text, 0::bigint, 0::bigint
FROM simba_mutex AS t
WHERE mutex = ANY ($1::text[])
UNION ALL
SELECT mutex, '', 0, 0, 0, NULL, 0, note, token, {now} - written_at
FROM :notes_table
WHERE mutex = ANY ($1::text[])
UNION ALL
SELECT '', '', {now}, 0, 0, NULL, 0, NULL, 0, 0

-- statement digest
-- One number that changes when any owner does.
SELECT
    '', '',
    abs(coalesce(sum(hashtext(mutex || '/' || owner_id || '/' || {token_column})::bigint), 0)),
    1, 0, NULL, 0
FROM simba_mutex
WHERE transition_at > {now} AND owner_id <> '' AND mutex <> ''

-- statement count_eviction: mutex
-- For owners who cannot listen: one of them was evicted.
INSERT INTO simba_mutex AS t (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
VALUES ('', 0, 0, 0, $1::text, 1)
ON CONFLICT (mutex) DO UPDATE SET owner_id = EXCLUDED.owner_id, version = (t.version + 1) % 2147483647

-- statement observe: observed_ms
-- For so long from now on, acquisitions are told, too.
INSERT INTO simba_mutex AS t (mutex, acquired_at, ttl_at, transition_at, owner_id, version)
VALUES ('', 0, 0, {now} + $1::bigint, '', 0)
ON CONFLICT (mutex) DO UPDATE SET transition_at = {now} + $1::bigint

-- statement mark, for many: mutex [versioned fenced]
-- There are no marks; each release is told.
SELECT mutex, '', 0, 0, 0, NULL, 0 FROM simba_mutex WHERE mutex = ANY ($1::text[])

-- statement mark, for many: mutex [marked]
-- Leaves marks on what is held. Told is what has a mark then.
WITH marked AS (
    UPDATE simba_mutex SET version = fencing_token + 1
    WHERE mutex = ANY ($1::text[]) AND version <= fencing_token
        AND transition_at > {now}
    RETURNING mutex
)
SELECT mutex, '', 0, 0, 0, NULL, 0 FROM marked
UNION ALL
SELECT mutex, '', 0, 0, 0, NULL, 0 FROM simba_mutex
WHERE mutex = ANY ($1::text[]) AND version > fencing_token
    AND transition_at > {now}

-- statement listen
LISTEN simba

-- statement make_notes
CREATE TABLE IF NOT EXISTS :notes_table :notes_columns
