-- Workflow documents that users have saved by name: the same tables and columns as on SQLite, in a schema of their own
-- that all servers share. It cannot be rebuilt from the log. Times are microseconds. `owner` is the user; empty:
-- none. A text that a caller chose may hold U+0000, which TEXT cannot: it is stored as U+0001 `0`, and U+0001 as
-- U+0001 `1`.

CREATE SCHEMA taskledger_workflows;
SET LOCAL search_path = taskledger_workflows;

-- One row. Every change locks it first, so that changes happen one after the other.
CREATE TABLE state (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1)
);
INSERT INTO state (one) VALUES (1);

-- The changes of each name. Rows are added and never changed.
CREATE TABLE events (
    tenant       TEXT COLLATE "C" NOT NULL,
    owner        TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    version      BIGINT NOT NULL,           -- from 1, without gaps, for each name
    kind         TEXT COLLATE "C" NOT NULL CHECK (kind IN ('saved', 'deleted')),
    info_version TEXT COLLATE "C" NOT NULL, -- that the document declares; empty for `deleted`
    hash         TEXT COLLATE "C" NOT NULL, -- of the document; empty for `deleted`
    bytes        BIGINT NOT NULL,           -- of its text
    at           BIGINT NOT NULL,
    principal    TEXT COLLATE "C" NOT NULL, -- that made the change
    PRIMARY KEY (tenant, owner, name, version)
);

-- The documents. All versions of a name are deleted with it.
CREATE TABLE texts (
    tenant  TEXT COLLATE "C" NOT NULL,
    owner   TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    form    TEXT COLLATE "C" NOT NULL CHECK (form IN ('text', 'json')), -- the form in which it was saved
    text    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, owner, name, version)
);

-- The names that are not deleted, with their newest version.
CREATE TABLE names (
    tenant  TEXT COLLATE "C" NOT NULL,
    owner   TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    bytes   BIGINT NOT NULL, -- of all stored versions
    PRIMARY KEY (tenant, owner, name)
);

-- The version that runs under an idempotency key, stored for a day: a repeated call runs the same version.
CREATE TABLE pins (
    tenant  TEXT COLLATE "C" NOT NULL,
    owner   TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    call    BYTEA NOT NULL, -- SHA-256 of caller and key
    version BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (tenant, owner, name, call)
);
CREATE INDEX pins_at ON pins (at);
