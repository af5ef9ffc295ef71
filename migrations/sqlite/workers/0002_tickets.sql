-- Places of methods with a limit, one for each attempt that may be under way on any server. A server that is
-- alone counts in memory and writes none. Counts while the lease holds: until `expires_at`, or until the time in
-- `renewals` if that is later. A row goes when its attempt ends; one that nobody removed, a day after that time.

CREATE TABLE tickets (
    lease      BLOB NOT NULL PRIMARY KEY,
    method     TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets_method ON tickets (method);
CREATE INDEX tickets_expires_at ON tickets (expires_at);
