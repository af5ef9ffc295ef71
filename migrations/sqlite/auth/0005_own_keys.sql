-- Keys that the server has made for itself. They are never shown, and have no other copy: backups need this file.
CREATE TABLE own_keys (
    name     TEXT NOT NULL PRIMARY KEY, -- what the key is for
    value    BLOB NOT NULL,
    had_none INTEGER NOT NULL           -- 1: there was something already that was made without the key
) STRICT, WITHOUT ROWID;
