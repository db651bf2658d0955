-- Makes a table of JVM Simba 3 or 4 one like ours: with fencing tokens, names compared byte by byte, room for
-- long ids. JVM peers may go on meanwhile, C clients as well: a new token is always above both columns.
-- It can be repeated. On MySQL the first statement fails then, which does no harm.
ALTER TABLE simba_mutex
    ADD COLUMN /*M! IF NOT EXISTS */ fencing_token BIGINT UNSIGNED NOT NULL DEFAULT 0;
UPDATE simba_mutex SET fencing_token = version WHERE fencing_token = 0 AND version > 0;
ALTER TABLE simba_mutex
    MODIFY COLUMN version BIGINT UNSIGNED NOT NULL,
    MODIFY COLUMN mutex VARCHAR(66) CHARACTER SET utf8mb4
        /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100200 COLLATE utf8mb4_nopad_bin */ NOT NULL,
    MODIFY COLUMN owner_id VARCHAR(128) CHARACTER SET utf8mb4
        /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100200 COLLATE utf8mb4_nopad_bin */ NOT NULL;
