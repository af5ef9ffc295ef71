-- Who may call the servers, secrets, and the audit log: the same tables and columns as on SQLite, in a schema of their
-- own that all servers share. It cannot be rebuilt from the log. Times are microseconds. No token's secret is stored,
-- only its SHA-256. A text that a caller chose may hold U+0000, which TEXT cannot: it is stored as U+0001 `0`, and
-- U+0001 as U+0001 `1`.

CREATE SCHEMA taskledger_auth;
SET LOCAL search_path = taskledger_auth;

-- One row. Every change locks it first, so that changes happen one after the other and rows of the audit log rise in
-- the order in which they are committed.
CREATE TABLE state (
    one        BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    generation BIGINT NOT NULL -- rises with each change that servers must not overlook
);
INSERT INTO state (one, generation) VALUES (1, 0);

CREATE TABLE tokens (
    no             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id             TEXT COLLATE "C" NOT NULL UNIQUE, -- 16 characters, part of the token
    kind           TEXT COLLATE "C" NOT NULL,        -- user or service
    name           TEXT COLLATE "C" NOT NULL,
    tenant         TEXT COLLATE "C" NOT NULL,
    scopes         TEXT COLLATE "C" NOT NULL,        -- names, separated by spaces
    methods        TEXT COLLATE "C",                 -- JSON list of the methods that a worker may claim; null: all
    -- JSON list of agents of the broker that it may act as, besides its owner; null: none.
    agents         TEXT,
    note           TEXT COLLATE "C" NOT NULL,
    digest         BYTEA NOT NULL,                   -- SHA-256 of the current secret
    previous       BYTEA,                            -- SHA-256 of the previous secret
    previous_until BIGINT,                           -- the previous secret is accepted until then
    created_at     BIGINT NOT NULL,
    rotated_at     BIGINT,
    expires_at     BIGINT,                           -- null: never
    revoked_at     BIGINT,
    last_used_at   BIGINT                            -- to the minute
);
CREATE INDEX tokens_owner ON tokens (tenant, kind, name, no);

-- Access tokens of OIDC issuers that are refused before they expire, by their id (`jti`) or by their subject.
CREATE TABLE denied_jwts (
    issuer    TEXT COLLATE "C" NOT NULL,
    claim     TEXT COLLATE "C" NOT NULL, -- jti or sub
    value     TEXT COLLATE "C" NOT NULL,
    denied_at BIGINT NOT NULL,           -- of a subject, tokens that were issued until then are refused
    PRIMARY KEY (issuer, claim, value)
);
CREATE INDEX denied_jwts_at ON denied_jwts (denied_at);

-- Secrets of users, which tasks refer to by name. Each value is sealed with a key of the key file and bound to its row:
-- in another row it does not open.
CREATE TABLE secrets (
    tenant     TEXT COLLATE "C" NOT NULL,
    owner      TEXT COLLATE "C" NOT NULL, -- the user whose flows may use it; empty: flows without a user
    name       TEXT COLLATE "C" NOT NULL,
    key_id     TEXT COLLATE "C" NOT NULL, -- name of the key that sealed it
    sealed     BYTEA NOT NULL,            -- nonce and ciphertext
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, owner, name)
);

-- Keys that the servers have generated for themselves. They are never shown, and exist nowhere else: backups need this
-- table.
CREATE TABLE own_keys (
    name  TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- what the key is for
    value BYTEA NOT NULL
);

-- The audit log. Rows are added and, when they are old, removed; never changed.
CREATE TABLE audit (
    seq       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        BIGINT NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    token     TEXT COLLATE "C", -- id of the credential
    address   TEXT COLLATE "C",
    request   TEXT COLLATE "C", -- id of the call
    action    TEXT COLLATE "C" NOT NULL,
    object    TEXT COLLATE "C",
    outcome   TEXT COLLATE "C" NOT NULL,
    detail    TEXT COLLATE "C", -- JSON object
    -- Includes the hash of the row before it (crates/auth/src/store/audit_chain.rs).
    hash      TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_principal ON audit (principal, seq);
CREATE INDEX audit_action ON audit (action, seq);
CREATE INDEX audit_object ON audit (object, seq);
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of the audit log are never changed';
END
$$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();

-- The ends of the audit log's hash chain, which detects rows that were changed or removed. One row.
CREATE TABLE audit_chain (
    one     BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    head    TEXT COLLATE "C" NOT NULL, -- hash of the last row
    dropped TEXT COLLATE "C" NOT NULL, -- hash of the last row that was removed because it was old
    kept    BIGINT NOT NULL            -- number of rows after that one
);
INSERT INTO audit_chain (one, head, dropped, kept) VALUES (1, '', '', 0);
