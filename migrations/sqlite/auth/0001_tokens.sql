-- Who may call the server, secrets, and the audit log. In a file of its own beside the log, because logs are exported,
-- archived and replayed; it cannot be rebuilt from the log. Times are microseconds. No token's secret is stored, only
-- its SHA-256.

-- One row. Every change locks it first, so that changes happen one after the other and rows of the audit log rise in
-- the order in which they are committed.
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
    methods        TEXT,                 -- JSON list of the methods that a worker may claim; null: all
    -- JSON list of agents of the broker that it may act as, besides its owner; null: none.
    agents         TEXT,
    note           TEXT NOT NULL,
    digest         BLOB NOT NULL,        -- SHA-256 of the current secret
    previous       BLOB,                 -- SHA-256 of the previous secret
    previous_until INTEGER,              -- the previous secret is accepted until then
    created_at     INTEGER NOT NULL,
    rotated_at     INTEGER,
    expires_at     INTEGER,              -- null: never
    revoked_at     INTEGER,
    last_used_at   INTEGER               -- to the minute
) STRICT;
CREATE INDEX tokens_owner ON tokens (tenant, kind, name, no);

-- Access tokens of OIDC issuers that are refused before they expire, by their id (`jti`) or by their subject.
CREATE TABLE denied_jwts (
    issuer    TEXT NOT NULL,
    claim     TEXT NOT NULL,    -- jti or sub
    value     TEXT NOT NULL,
    denied_at INTEGER NOT NULL, -- of a subject, tokens that were issued until then are refused
    PRIMARY KEY (issuer, claim, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX denied_jwts_at ON denied_jwts (denied_at);

-- Secrets of users, which tasks refer to by name. Each value is sealed with a key of the key file and bound to its row:
-- in another row it does not open.
CREATE TABLE secrets (
    tenant     TEXT NOT NULL,
    owner      TEXT NOT NULL, -- the user whose flows may use it; empty: flows without a user
    name       TEXT NOT NULL,
    key_id     TEXT NOT NULL, -- name of the key that sealed it
    sealed     BLOB NOT NULL, -- nonce and ciphertext
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, name)
) STRICT, WITHOUT ROWID;

-- Keys that the server has generated for itself. They are never shown, and exist nowhere else: backups need this file.
CREATE TABLE own_keys (
    name  TEXT NOT NULL PRIMARY KEY, -- what the key is for
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The audit log. Rows are added and, when they are old, removed; never changed.
CREATE TABLE audit (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    principal TEXT NOT NULL,
    token     TEXT, -- id of the credential
    address   TEXT,
    request   TEXT, -- id of the call
    action    TEXT NOT NULL,
    object    TEXT,
    outcome   TEXT NOT NULL,
    detail    TEXT, -- JSON object
    -- Includes the hash of the row before it (crates/auth/src/store/audit_chain.rs).
    hash      TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_principal ON audit (principal, seq);
CREATE INDEX audit_action ON audit (action, seq);
CREATE INDEX audit_object ON audit (object, seq);
CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'rows of the audit log are never changed');
END;

-- The ends of the audit log's hash chain, which detects rows that were changed or removed. One row.
CREATE TABLE audit_chain (
    one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    head    TEXT NOT NULL,   -- hash of the last row
    dropped TEXT NOT NULL,   -- hash of the last row that was removed because it was old
    kept    INTEGER NOT NULL -- number of rows after that one
) STRICT;
INSERT INTO audit_chain (one, head, dropped, kept) VALUES (1, '', '', 0);
