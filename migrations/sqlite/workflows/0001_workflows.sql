-- Workflow documents that users keep by name. In a file of its own beside the log; it cannot be made again from
-- the log. Times are microseconds. Everything is synced before it is answered. `owner` is the user; empty: nobody.

-- One row: whoever changes something locks it first, so that changes happen one after the other.
CREATE TABLE state (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1)
) STRICT;
INSERT INTO state (one) VALUES (1);

-- What happened to each name. Rows are added and never changed.
CREATE TABLE events (
    tenant       TEXT NOT NULL,
    owner        TEXT NOT NULL,
    name         TEXT NOT NULL,
    version      INTEGER NOT NULL, -- from 1, without gaps, for each name
    kind         TEXT NOT NULL CHECK (kind IN ('saved', 'deleted')),
    info_version TEXT NOT NULL,    -- what the document says; empty for `deleted`
    hash         TEXT NOT NULL,    -- of the document; empty for `deleted`
    bytes        INTEGER NOT NULL, -- of its text
    at           INTEGER NOT NULL,
    principal    TEXT NOT NULL,    -- who did it
    PRIMARY KEY (tenant, owner, name, version)
) STRICT, WITHOUT ROWID;

-- The documents. All of a name go when it is deleted.
CREATE TABLE texts (
    tenant  TEXT NOT NULL,
    owner   TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    form    TEXT NOT NULL CHECK (form IN ('text', 'json')), -- how it was given
    text    TEXT NOT NULL,
    PRIMARY KEY (tenant, owner, name, version)
) STRICT;

-- The names that are not deleted, with their newest version.
CREATE TABLE names (
    tenant  TEXT NOT NULL,
    owner   TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    bytes   INTEGER NOT NULL, -- of all versions that are kept
    PRIMARY KEY (tenant, owner, name)
) STRICT, WITHOUT ROWID;

-- Which version runs under an idempotency key, for a day: a repeated call runs no newer one.
CREATE TABLE pins (
    tenant  TEXT NOT NULL,
    owner   TEXT NOT NULL,
    name    TEXT NOT NULL,
    call    BLOB NOT NULL, -- SHA-256 of who calls and the key
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, name, call)
) STRICT, WITHOUT ROWID;
CREATE INDEX pins_at ON pins (at);
