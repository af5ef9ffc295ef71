-- Places of methods with a limit, one for each attempt that may be under way on any server. Counts while the
-- lease holds: until `expires_at`, or until the time in `renewals` if that is later. A row goes when its attempt
-- ends; one that nobody removed, a day after that time. Taken under the lock of the method's row.

SET LOCAL search_path = taskledger_workers;

CREATE TABLE tickets (
    lease      BYTEA NOT NULL PRIMARY KEY,
    method     TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX tickets_method ON tickets (method);
CREATE INDEX tickets_expires_at ON tickets (expires_at);
