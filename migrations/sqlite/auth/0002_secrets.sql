-- Secrets of users, which tasks name in their inputs instead of holding them. Each value is sealed with a key of
-- the key file and bound to its row: in another row it does not open.
CREATE TABLE secrets (
    tenant     TEXT NOT NULL,
    owner      TEXT NOT NULL,    -- user of the flows that may use it; empty: flows without a user
    name       TEXT NOT NULL,
    key_id     TEXT NOT NULL,    -- name of the key that sealed it
    sealed     BLOB NOT NULL,    -- nonce and ciphertext
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, name)
) STRICT, WITHOUT ROWID;
