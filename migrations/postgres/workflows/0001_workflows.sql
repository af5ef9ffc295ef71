-- Workflow documents that users keep by name: the same tables and columns as on SQLite, in a schema of their own
-- that all servers share. It cannot be made again from the log. Times are microseconds. `owner` is the user; empty:
-- nobody. A text that a caller chose may hold U+0000, which TEXT cannot: it is stored as U+0001 `0`, and U+0001 as
-- U+0001 `1`.

CREATE SCHEMA taskledger_workflows;
SET LOCAL search_path = taskledger_workflows;

-- One row: whoever changes something locks it first, so that changes happen one after the other.
CREATE TABLE state (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1)
);
INSERT INTO state (one) VALUES (1);

-- What happened to each name. Rows are added and never changed.
CREATE TABLE events (
    tenant       TEXT COLLATE "C" NOT NULL,
    owner        TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    version      BIGINT NOT NULL,           -- from 1, without gaps, for each name
    kind         TEXT COLLATE "C" NOT NULL CHECK (kind IN ('saved', 'deleted')),
    info_version TEXT COLLATE "C" NOT NULL, -- what the document says; empty for `deleted`
    hash         TEXT COLLATE "C" NOT NULL, -- of the document; empty for `deleted`
    bytes        BIGINT NOT NULL,           -- of its text
    at           BIGINT NOT NULL,
    principal    TEXT COLLATE "C" NOT NULL, -- who did it
    PRIMARY KEY (tenant, owner, name, version)
);

-- The documents. All of a name go when it is deleted.
CREATE TABLE texts (
    tenant  TEXT COLLATE "C" NOT NULL,
    owner   TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    form    TEXT COLLATE "C" NOT NULL CHECK (form IN ('text', 'json')), -- how it was given
    text    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, owner, name, version)
);

-- The names that are not deleted, with their newest version.
CREATE TABLE names (
    tenant  TEXT COLLATE "C" NOT NULL,
    owner   TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    bytes   BIGINT NOT NULL, -- of all versions that are kept
    PRIMARY KEY (tenant, owner, name)
);

-- Which version runs under an idempotency key, for a day: a repeated call runs no newer one.
CREATE TABLE pins (
    tenant  TEXT COLLATE "C" NOT NULL,
    owner   TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    call    BYTEA NOT NULL, -- SHA-256 of who calls and the key
    version BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (tenant, owner, name, call)
);
CREATE INDEX pins_at ON pins (at);
