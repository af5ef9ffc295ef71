-- Secrets of users, which tasks name in their inputs instead of holding them. Each value is sealed with a key of
-- the key file and bound to its row: in another row it does not open.
SET LOCAL search_path = taskledger_auth;

CREATE TABLE secrets (
    tenant     TEXT COLLATE "C" NOT NULL,
    owner      TEXT COLLATE "C" NOT NULL, -- user of the flows that may use it; empty: flows without a user
    name       TEXT COLLATE "C" NOT NULL,
    key_id     TEXT COLLATE "C" NOT NULL, -- name of the key that sealed it
    sealed     BYTEA NOT NULL,            -- nonce and ciphertext
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, owner, name)
);
