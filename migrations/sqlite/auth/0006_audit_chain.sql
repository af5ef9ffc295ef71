-- Each row of the audit log has a hash that includes the hash of the row before it, so that a row that is changed or
-- removed is noticed; see crates/auth/src/store/audit_chain.rs.
ALTER TABLE audit ADD COLUMN hash TEXT NOT NULL DEFAULT '';

CREATE TABLE audit_chain (
    one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    head    TEXT NOT NULL,    -- hash of the last row
    dropped TEXT NOT NULL,    -- hash of the last row that was removed because it was old
    kept    INTEGER NOT NULL, -- rows behind that one
    since   INTEGER NOT NULL  -- rows up to this number have no hash
) STRICT;
INSERT INTO audit_chain SELECT 1, '', '', 0, COALESCE(MAX(seq), 0) FROM audit;
