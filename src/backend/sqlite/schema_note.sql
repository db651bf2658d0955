-- Notes of mutexes. A database that an older Simba has made gets this table with the first note.
CREATE TABLE note (
    mutex   TEXT PRIMARY KEY,
    text    TEXT NOT NULL,
    token   INTEGER NOT NULL, -- of the tenure that wrote it
    serial  INTEGER NOT NULL, -- rises within that tenure
    written INTEGER NOT NULL, -- nanoseconds of boot time
    wall    INTEGER NOT NULL, -- nanoseconds since 1970: for readers in another boot
    boot    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
