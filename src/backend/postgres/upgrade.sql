-- Makes a table without fencing tokens, or with short columns, one like ours. A new token is always above both
-- columns, so clients may go on meanwhile. It can be repeated.
BEGIN;
ALTER TABLE simba_mutex ADD COLUMN IF NOT EXISTS fencing_token bigint NOT NULL DEFAULT 0,
    ALTER COLUMN version TYPE bigint,
    ALTER COLUMN mutex TYPE varchar(66) COLLATE "C",
    ALTER COLUMN owner_id TYPE varchar(128) COLLATE "C";
UPDATE simba_mutex SET fencing_token = version WHERE fencing_token = 0 AND version > 0;
COMMIT;
