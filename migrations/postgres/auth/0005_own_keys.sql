-- Keys that the server has made for itself. They are never shown, and have no other copy: backups need this table.
SET LOCAL search_path = taskledger_auth;

CREATE TABLE own_keys (
    name     TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- what the key is for
    value    BYTEA NOT NULL,
    had_none BIGINT NOT NULL                        -- 1: there was something already that was made without the key
);
