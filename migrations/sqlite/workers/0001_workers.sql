-- Workers outside the server: the methods that they declared, who is there, who is drained, and until when
-- their leases were renewed. In a file of its own beside the log; it cannot be made again from the log. Times
-- are microseconds, ids are 16 bytes. What is written here survives a kill of the process; only methods and
-- drains are synced before they are answered, so a power cut may undo renewals and presence.

-- One row. Whoever changes methods or drains locks it first, so that such changes happen one after the other.
CREATE TABLE state (
    one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    declared INTEGER NOT NULL, -- rises with each change of methods or drains
    presence INTEGER NOT NULL  -- rises when a worker asks for a method that nobody asked for
) STRICT;
INSERT INTO state (one, declared, presence) VALUES (1, 0, 0);

CREATE TABLE methods (
    name          TEXT NOT NULL PRIMARY KEY,
    description   TEXT,
    input_schema  TEXT,             -- JSON object
    output_schema TEXT,             -- JSON object
    defaults      TEXT,             -- JSON object: members of `params` of new tasks
    attempts_max  INTEGER,          -- attempts at once, all servers together; null: any number
    declared_by   TEXT NOT NULL,    -- principal
    declared_at   INTEGER NOT NULL,
    bytes         INTEGER NOT NULL  -- of all texts above, for the limit of all rows together
) STRICT, WITHOUT ROWID;

-- A row goes when its attempt ends; one that nobody removed, a day after the lease ended.
CREATE TABLE renewals (
    lease      BLOB NOT NULL PRIMARY KEY,
    flow       BLOB NOT NULL,
    task       BLOB NOT NULL,
    attempt    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL -- never lowered
) STRICT, WITHOUT ROWID;
CREATE INDEX renewals_flow ON renewals (flow);
CREATE INDEX renewals_expires_at ON renewals (expires_at);

-- Who asks for work, as the servers that they are connected to have seen it.
CREATE TABLE workers (
    principal    TEXT NOT NULL,
    worker       TEXT NOT NULL,
    node         BLOB NOT NULL,    -- the server; all zero for one that is alone
    methods      TEXT NOT NULL,    -- JSON list
    connection   TEXT NOT NULL,    -- poll or socket
    since        INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    PRIMARY KEY (principal, worker, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX workers_last_seen_at ON workers (last_seen_at);

-- Workers that get no new work, whether they are there or not.
CREATE TABLE drains (
    principal  TEXT NOT NULL,
    worker     TEXT NOT NULL,
    drained_at INTEGER NOT NULL,
    PRIMARY KEY (principal, worker)
) STRICT, WITHOUT ROWID;
