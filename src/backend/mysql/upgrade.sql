-- Makes a table of JVM Simba 3.x one that also keeps fencing tokens. JVM peers may go on meanwhile, C
-- clients as well: a new token is always above both columns. On a table that has a fencing_token already the
-- first statement fails and nothing is changed.
ALTER TABLE simba_mutex
    ADD COLUMN fencing_token BIGINT UNSIGNED NOT NULL DEFAULT 0,
    MODIFY COLUMN version BIGINT UNSIGNED NOT NULL,
    MODIFY COLUMN owner_id VARCHAR(128) NOT NULL;
UPDATE simba_mutex SET fencing_token = version WHERE fencing_token < version
