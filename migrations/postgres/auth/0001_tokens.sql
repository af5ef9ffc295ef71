-- Who may call the servers, and what was done about it: the same tables and columns as on SQLite, in a schema
-- of their own that all servers share. It cannot be made again from the log. Times are microseconds. No secret
-- is stored: what is kept of one is its SHA-256. A text that a caller chose may hold U+0000, which TEXT
-- cannot: it is stored as U+0001 `0`, and U+0001 as U+0001 `1`.

CREATE SCHEMA taskledger_auth;
SET LOCAL search_path = taskledger_auth;

-- One row. Whoever changes something locks it first, so that changes happen one after the other and rows of
-- the audit log rise in the order in which they are committed.
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
    methods        TEXT COLLATE "C",                 -- JSON list of those that a worker may claim; null: all
    note           TEXT COLLATE "C" NOT NULL,
    digest         BYTEA NOT NULL,                   -- SHA-256 of the present secret
    previous       BYTEA,                            -- of the one before
    previous_until BIGINT,                           -- which is accepted until then
    created_at     BIGINT NOT NULL,
    rotated_at     BIGINT,
    expires_at     BIGINT,                           -- null: never
    revoked_at     BIGINT,
    last_used_at   BIGINT                            -- to the minute
);
CREATE INDEX tokens_owner ON tokens (tenant, kind, name, no);

-- Rows are added and, when they are old, removed; never changed.
CREATE TABLE audit (
    seq       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        BIGINT NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    token     TEXT COLLATE "C",          -- id of the credential
    address   TEXT COLLATE "C",
    request   TEXT COLLATE "C",          -- id of the call
    action    TEXT COLLATE "C" NOT NULL,
    object    TEXT COLLATE "C",
    outcome   TEXT COLLATE "C" NOT NULL,
    detail    TEXT COLLATE "C"           -- JSON object
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
