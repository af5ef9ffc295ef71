-- The log and what is written through the same writer. Never edited, only followed.

-- One row per flow. Events carry the number, not the id, so that their index grows at its end.
CREATE TABLE streams (
    number        INTEGER PRIMARY KEY,
    flow          BLOB    NOT NULL UNIQUE,
    version       INTEGER NOT NULL,
    last_position INTEGER NOT NULL
) STRICT;

-- Positions are dense: 1, 2, 3, ... in commit order.
-- Times are microseconds since 1970, ids are the 16 bytes of a UUID.
-- `checksum` is the CRC-32 of all other columns, with the flow's id in place of `stream`.
CREATE TABLE events (
    position       INTEGER PRIMARY KEY,
    stream         INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    id             BLOB    NOT NULL,
    time           INTEGER NOT NULL,
    recorded_at    INTEGER NOT NULL,
    kind           TEXT    NOT NULL,
    schema_version INTEGER NOT NULL,
    actor          TEXT    NOT NULL,
    correlation    TEXT    NOT NULL,
    causation      BLOB,
    trace          TEXT,
    checksum       INTEGER NOT NULL,
    data           TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_stream ON events (stream, version);

-- Kind 1: a task's id (16 bytes); kind 2: a request's key (text as bytes).
CREATE TABLE claims (
    kind       INTEGER NOT NULL,
    key        BLOB    NOT NULL,
    value      TEXT    NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_by_expiry ON claims (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE fences (
    name  TEXT    NOT NULL PRIMARY KEY,
    token INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Baselines for loading; may be deleted at any time.
CREATE TABLE snapshots (
    stream   INTEGER PRIMARY KEY,
    format   INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    bytes    BLOB    NOT NULL
) STRICT;
