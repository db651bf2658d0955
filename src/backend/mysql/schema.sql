-- The table of the mysql: and mariadb: stores. Times are milliseconds since 1970 by the server's clock, in UTC.
-- Names and ids are compared byte by byte: what is in a comment that begins with an exclamation mark is read by
-- MySQL 8, with an M before it by MariaDB.
CREATE TABLE IF NOT EXISTS simba_mutex (
    mutex         VARCHAR(66) CHARACTER SET utf8mb4
                  /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100200 COLLATE utf8mb4_nopad_bin */
                  NOT NULL PRIMARY KEY,
    acquired_at   BIGINT UNSIGNED NOT NULL,
    ttl_at        BIGINT UNSIGNED NOT NULL, -- below 2^32: evicted, and the first character of its id
    transition_at BIGINT UNSIGNED NOT NULL, -- from here on another may take it
    owner_id      VARCHAR(128) CHARACTER SET utf8mb4
                  /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100200 COLLATE utf8mb4_nopad_bin */
                  NOT NULL,
    version       BIGINT UNSIGNED NOT NULL,
    fencing_token BIGINT UNSIGNED NOT NULL DEFAULT 0
) ENGINE = InnoDB;
