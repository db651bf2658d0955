-- The notes of mutexes, for the postgresql: store. They are kept in the schema that simba_mutex is in.
CREATE TABLE IF NOT EXISTS simba_note (
    mutex      varchar(66) COLLATE "C" NOT NULL PRIMARY KEY,
    token      bigint NOT NULL, -- of the tenure that wrote it
    serial     bigint NOT NULL, -- rises within that tenure
    written_at bigint NOT NULL,
    note       text COLLATE "C" NOT NULL
);
