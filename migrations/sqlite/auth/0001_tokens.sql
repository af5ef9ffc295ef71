-- Who may call the server, and what was done about it. In a file of its own beside the log, because logs are
-- exported, kept and replayed; it cannot be made again from the log. Times are microseconds. No secret is
-- stored: what is kept of one is its SHA-256.

-- One row. Whoever changes something locks it first, so that changes happen one after the other and rows of
-- the audit log rise in the order in which they are committed.
CREATE TABLE state (
    one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    generation INTEGER NOT NULL -- rises with each change that servers must not overlook
) STRICT;
INSERT INTO state (one, generation) VALUES (1, 0);

CREATE TABLE tokens (
    no             INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT NOT NULL UNIQUE, -- 16 characters, part of the token
    kind           TEXT NOT NULL,        -- user or service
    name           TEXT NOT NULL,
    tenant         TEXT NOT NULL,
    scopes         TEXT NOT NULL,        -- names, separated by spaces
    methods        TEXT,                 -- JSON list of those that a worker may claim; null: all
    note           TEXT NOT NULL,
    digest         BLOB NOT NULL,        -- SHA-256 of the present secret
    previous       BLOB,                 -- of the one before
    previous_until INTEGER,              -- which is accepted until then
    created_at     INTEGER NOT NULL,
    rotated_at     INTEGER,
    expires_at     INTEGER,              -- null: never
    revoked_at     INTEGER,
    last_used_at   INTEGER               -- to the minute
) STRICT;
CREATE INDEX tokens_owner ON tokens (tenant, kind, name, no);

-- Rows are added and, when they are old, removed; never changed.
CREATE TABLE audit (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    principal TEXT NOT NULL,
    token     TEXT,          -- id of the credential
    address   TEXT,
    request   TEXT,          -- id of the call
    action    TEXT NOT NULL,
    object    TEXT,
    outcome   TEXT NOT NULL,
    detail    TEXT           -- JSON object
) STRICT;
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_principal ON audit (principal, seq);
CREATE INDEX audit_action ON audit (action, seq);
CREATE INDEX audit_object ON audit (object, seq);
CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'rows of the audit log are never changed');
END;
