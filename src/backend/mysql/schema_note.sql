-- The notes of mutexes, for the mysql: and mariadb: stores. Names are bytes, to be compared with those of any table.
CREATE TABLE IF NOT EXISTS simba_note (
    mutex      VARBINARY(66) NOT NULL PRIMARY KEY,
    token      BIGINT UNSIGNED NOT NULL, -- of the tenure that wrote it
    serial     BIGINT UNSIGNED NOT NULL, -- rises within that tenure
    written_at BIGINT UNSIGNED NOT NULL,
    note       VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
) ENGINE = InnoDB;
