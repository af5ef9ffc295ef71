-- Workers outside the servers: the same tables and columns as on SQLite, in a schema of their own that all servers
-- share. It cannot be rebuilt from the log. Times are microseconds, ids are 16 bytes. Renewals and presence are written
-- without waiting for the disk. A text that a caller chose may hold U+0000, which TEXT cannot: it is stored as U+0001
-- `0`, and U+0001 as U+0001 `1`.

CREATE SCHEMA taskledger_workers;
SET LOCAL search_path = taskledger_workers;

-- One row. Every change of methods or drains locks it first, so that such changes happen one after the other.
CREATE TABLE state (
    one      BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    declared BIGINT NOT NULL, -- rises with each change of methods or drains
    presence BIGINT NOT NULL  -- rises when a worker asks for a method that no other worker asked for
);
INSERT INTO state (one, declared, presence) VALUES (1, 0, 0);

CREATE TABLE methods (
    name          TEXT COLLATE "C" NOT NULL,
    owner         TEXT COLLATE "C" NOT NULL DEFAULT '', -- the user whose flows alone it is for; '' for all
    description   TEXT COLLATE "C",
    input_schema  TEXT COLLATE "C",                     -- JSON object
    output_schema TEXT COLLATE "C",                     -- JSON object
    defaults      TEXT COLLATE "C",                     -- JSON object: members of `params` of new tasks
    attempts_max  BIGINT,                               -- attempts at once, on all servers together; null: any number
    declared_by   TEXT COLLATE "C" NOT NULL,            -- principal
    declared_at   BIGINT NOT NULL,
    bytes         BIGINT NOT NULL,                      -- of all texts above, for the limit of all rows together
    PRIMARY KEY (name, owner)
);

-- A row is deleted when its attempt ends, or else a day after the lease ended.
CREATE TABLE renewals (
    lease      BYTEA NOT NULL PRIMARY KEY,
    flow       BYTEA NOT NULL,
    task       BYTEA NOT NULL,
    attempt    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, -- never lowered
    -- Extensions of the lease because its flow moved to another process, since the worker last renewed it. Their number
    -- is limited, so that a server that restarts again and again does not hold the attempt of a worker that is gone.
    graces     BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX renewals_flow ON renewals (flow);
CREATE INDEX renewals_expires_at ON renewals (expires_at);

-- Places of methods with a limit, one for each attempt that may be in progress on any server. A ticket counts while the
-- lease holds: until `expires_at`, or until the time in `renewals` if that is later. A row is deleted when its attempt
-- ends, or else a day after that time. Taken under the lock of the method's row.
CREATE TABLE tickets (
    lease      BYTEA NOT NULL PRIMARY KEY,
    method     TEXT COLLATE "C" NOT NULL,
    owner      TEXT COLLATE "C" NOT NULL DEFAULT '', -- of the method's declaration; '' for the shared one
    expires_at BIGINT NOT NULL
);
CREATE INDEX tickets_method ON tickets (method);
CREATE INDEX tickets_expires_at ON tickets (expires_at);

-- Workers that ask for work, as the servers that they are connected to have seen them.
CREATE TABLE workers (
    principal    TEXT COLLATE "C" NOT NULL,
    worker       TEXT COLLATE "C" NOT NULL,
    node         BYTEA NOT NULL,                       -- the server
    owner        TEXT COLLATE "C" NOT NULL DEFAULT '', -- the user whose flows it may claim tasks of; '' for all
    methods      TEXT COLLATE "C" NOT NULL,            -- JSON list
    connection   TEXT COLLATE "C" NOT NULL,            -- poll or socket
    since        BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    PRIMARY KEY (principal, worker, node)
);
CREATE INDEX workers_last_seen_at ON workers (last_seen_at);

-- Workers that get no new work, whether they are connected or not.
CREATE TABLE drains (
    principal  TEXT COLLATE "C" NOT NULL,
    worker     TEXT COLLATE "C" NOT NULL,
    drained_at BIGINT NOT NULL,
    PRIMARY KEY (principal, worker)
);
