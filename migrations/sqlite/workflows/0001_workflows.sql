-- Workflow documents that users have saved by name. In a file of its own beside the log; it cannot be rebuilt from the
-- log. Times are microseconds. Every change is synced before it is answered. `owner` is the user; empty: none.

-- One row. Every change locks it first, so that changes happen one after the other.
CREATE TABLE state (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1)
) STRICT;
INSERT INTO state (one) VALUES (1);

-- The changes of each name. Rows are added and never changed.
CREATE TABLE events (
    tenant       TEXT NOT NULL,
    owner        TEXT NOT NULL,
    name         TEXT NOT NULL,
    version      INTEGER NOT NULL, -- from 1, without gaps, for each name
    kind         TEXT NOT NULL CHECK (kind IN ('saved', 'deleted')),
    info_version TEXT NOT NULL,    -- that the document declares; empty for `deleted`
    hash         TEXT NOT NULL,    -- of the document; empty for `deleted`
    bytes        INTEGER NOT NULL, -- of its text
    at           INTEGER NOT NULL,
    principal    TEXT NOT NULL,    -- that made the change
    PRIMARY KEY (tenant, owner, name, version)
) STRICT, WITHOUT ROWID;

-- The documents. All versions of a name are deleted with it.
CREATE TABLE texts (
    tenant  TEXT NOT NULL,
    owner   TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    form    TEXT NOT NULL CHECK (form IN ('text', 'json')), -- the form in which it was saved
    text    TEXT NOT NULL,
    PRIMARY KEY (tenant, owner, name, version)
) STRICT;

-- The names that are not deleted, with their newest version.
CREATE TABLE names (
    tenant  TEXT NOT NULL,
    owner   TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    bytes   INTEGER NOT NULL, -- of all stored versions
    PRIMARY KEY (tenant, owner, name)
) STRICT, WITHOUT ROWID;

-- The version that runs under an idempotency key, stored for a day: a repeated call runs the same version.
CREATE TABLE pins (
    tenant  TEXT NOT NULL,
    owner   TEXT NOT NULL,
    name    TEXT NOT NULL,
    call    BLOB NOT NULL, -- SHA-256 of caller and key
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, name, call)
) STRICT, WITHOUT ROWID;
CREATE INDEX pins_at ON pins (at);
