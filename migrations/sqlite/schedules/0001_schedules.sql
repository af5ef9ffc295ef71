-- Schedules and the outcomes of their times. In a file of its own beside the log; it cannot be rebuilt from the log.
-- Times are microseconds. Every change is synced before it is answered. `owner` is the user; empty: none.

-- One row. Every change locks it first, so that changes happen one after the other.
CREATE TABLE state (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1)
) STRICT;
INSERT INTO state (one) VALUES (1);

CREATE TABLE schedules (
    id              BLOB NOT NULL PRIMARY KEY, -- UUID
    tenant          TEXT NOT NULL,
    owner           TEXT NOT NULL,
    name            TEXT NOT NULL,
    actor           TEXT NOT NULL,             -- principal that it starts runs as
    scopes          TEXT NOT NULL,             -- what its runs may do
    version         INTEGER NOT NULL,          -- from 1, one more with each change
    definition      TEXT NOT NULL,             -- JSON
    paused          INTEGER NOT NULL,          -- 0 or 1
    note            TEXT,                      -- why it is paused
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    cursor          INTEGER NOT NULL,          -- all its times up to here are processed
    next_at         INTEGER,                   -- its next time; NULL: there is none
    due_at          INTEGER,                   -- when a server has to check it; NULL: never
    lease           INTEGER NOT NULL,          -- a check or change with an older number has no effect
    leased_until    INTEGER NOT NULL,          -- no other server checks it before
    started         INTEGER NOT NULL,          -- runs started at its times
    started_by_hand INTEGER NOT NULL,
    skipped         INTEGER NOT NULL,          -- times, because a run was in progress
    missed          INTEGER NOT NULL,          -- times, because no server ran then
    failed          INTEGER NOT NULL,          -- starts that failed
    last_error      TEXT,
    work_version    INTEGER,                   -- of its workflow at the last change; NULL: it starts tasks
    waits_since     INTEGER,                   -- since when no check has completed; NULL: the last one did
    UNIQUE (tenant, owner, name)
) STRICT;
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_held ON schedules (leased_until) WHERE leased_until > 0;

-- The newest times and their outcomes. A row in state `starting` is an intention that survives a crash: the id of the
-- flow that it starts is derived from the schedule and the key, so that it is started once.
CREATE TABLE runs (
    schedule     BLOB NOT NULL,
    key          TEXT NOT NULL,              -- the time in microseconds, or `now:` and a key
    scheduled_at INTEGER NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('waiting', 'starting', 'started', 'skipped', 'failed')),
    flow         BLOB NOT NULL,              -- id of its flow, even if that was not started
    run          BLOB,                       -- UUID
    stage        TEXT,                       -- how the run ended; NULL: not known to have ended
    error        TEXT,                       -- why it was not started
    decided_at   INTEGER NOT NULL,           -- when it became `starting` or was skipped
    at           INTEGER NOT NULL,           -- of the last change
    cancels      INTEGER NOT NULL DEFAULT 0, -- 1: runs before it are cancelled before it starts
    PRIMARY KEY (schedule, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_newest ON runs (schedule, scheduled_at);
-- Times whose run is not over. The others are deleted, except the newest.
CREATE INDEX runs_open ON runs (schedule, scheduled_at)
    WHERE state IN ('waiting', 'starting') OR (state = 'started' AND stage IS NULL);

-- The editions of the time zone database with which servers have computed times. The newest row shows a server that
-- starts with another edition that it has to compute the times of all schedules again.
CREATE TABLE zone_editions (
    edition  TEXT NOT NULL PRIMARY KEY,
    noted_at INTEGER NOT NULL -- when a server last recorded it
) STRICT, WITHOUT ROWID;
