-- Workers outside the server: declared methods, presence, drains, and until when their leases were renewed. In a file
-- of its own beside the log; it cannot be rebuilt from the log. Times are microseconds, ids are 16 bytes. What is
-- written here survives a kill of the process; only methods and drains are synced before they are answered, so a power
-- cut may undo renewals and presence.

-- One row. Every change of methods or drains locks it first, so that such changes happen one after the other.
CREATE TABLE state (
    one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    declared INTEGER NOT NULL, -- rises with each change of methods or drains
    presence INTEGER NOT NULL  -- rises when a worker asks for a method that no other worker asked for
) STRICT;
INSERT INTO state (one, declared, presence) VALUES (1, 0, 0);

CREATE TABLE methods (
    name          TEXT NOT NULL,
    owner         TEXT NOT NULL,    -- the user whose flows alone it is for; '' for all
    description   TEXT,
    input_schema  TEXT,             -- JSON object
    output_schema TEXT,             -- JSON object
    defaults      TEXT,             -- JSON object: members of `params` of new tasks
    attempts_max  INTEGER,          -- attempts at once, on all servers together; null: any number
    declared_by   TEXT NOT NULL,    -- principal
    declared_at   INTEGER NOT NULL,
    bytes         INTEGER NOT NULL, -- of all texts above, for the limit of all rows together
    PRIMARY KEY (name, owner)
) STRICT, WITHOUT ROWID;

-- A row is deleted when its attempt ends, or else a day after the lease ended.
CREATE TABLE renewals (
    lease      BLOB NOT NULL PRIMARY KEY,
    flow       BLOB NOT NULL,
    task       BLOB NOT NULL,
    attempt    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, -- never lowered
    -- Extensions of the lease because its flow moved to another process, since the worker last renewed it. Their number
    -- is limited, so that a server that restarts again and again does not hold the attempt of a worker that is gone.
    graces     INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX renewals_flow ON renewals (flow);
CREATE INDEX renewals_expires_at ON renewals (expires_at);

-- Places of methods with a limit, one for each attempt that may be in progress on any server. A single server counts in
-- memory and writes none. A ticket counts while the lease holds: until `expires_at`, or until the time in `renewals` if
-- that is later. A row is deleted when its attempt ends, or else a day after that time.
CREATE TABLE tickets (
    lease      BLOB NOT NULL PRIMARY KEY,
    method     TEXT NOT NULL,
    owner      TEXT NOT NULL DEFAULT '', -- of the method's declaration; '' for the shared one
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets_method ON tickets (method);
CREATE INDEX tickets_expires_at ON tickets (expires_at);

-- Workers that ask for work, as the servers that they are connected to have seen them.
CREATE TABLE workers (
    principal    TEXT NOT NULL,
    worker       TEXT NOT NULL,
    node         BLOB NOT NULL,            -- the server; all zero for a single one
    owner        TEXT NOT NULL DEFAULT '', -- the user whose flows it may claim tasks of; '' for all
    methods      TEXT NOT NULL,            -- JSON list
    connection   TEXT NOT NULL,            -- poll or socket
    since        INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    PRIMARY KEY (principal, worker, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX workers_last_seen_at ON workers (last_seen_at);

-- Workers that get no new work, whether they are connected or not.
CREATE TABLE drains (
    principal  TEXT NOT NULL,
    worker     TEXT NOT NULL,
    drained_at INTEGER NOT NULL,
    PRIMARY KEY (principal, worker)
) STRICT, WITHOUT ROWID;
