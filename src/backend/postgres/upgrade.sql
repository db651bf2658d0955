-- Makes a table without fencing tokens one that keeps them. A new token is always above both columns, so
-- clients may go on meanwhile.
ALTER TABLE simba_mutex ADD COLUMN IF NOT EXISTS fencing_token bigint NOT NULL DEFAULT 0,
    ALTER COLUMN version TYPE bigint;
UPDATE simba_mutex SET fencing_token = version WHERE fencing_token < version
