-- Schedules and what became of their times. In a file of its own beside the log; it cannot be made again from the log.
-- Times are microseconds. Everything is synced before it is answered. `owner` is the user; empty: nobody.

-- One row: whoever changes something locks it first, so that changes happen one after the other.
CREATE TABLE state (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1)
) STRICT;
INSERT INTO state (one) VALUES (1);

CREATE TABLE schedules (
    id              BLOB NOT NULL PRIMARY KEY, -- UUID
    tenant          TEXT NOT NULL,
    owner           TEXT NOT NULL,
    name            TEXT NOT NULL,
    actor           TEXT NOT NULL,             -- in whose name it starts runs
    scopes          TEXT NOT NULL,             -- what it may do then
    version         INTEGER NOT NULL,          -- from 1, one more with each change
    definition      TEXT NOT NULL,             -- JSON
    paused          INTEGER NOT NULL,          -- 0 or 1
    note            TEXT,                      -- why
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    cursor          INTEGER NOT NULL,          -- all its times up to here are dealt with
    next_at         INTEGER,                   -- its next time; NULL: there is none
    due_at          INTEGER,                   -- when a server has to look at it; NULL: never
    lease           INTEGER NOT NULL,          -- a look or a change with an older number changes nothing any more
    leased_until    INTEGER NOT NULL,          -- no other server looks before
    started         INTEGER NOT NULL,          -- runs started at its times
    started_by_hand INTEGER NOT NULL,
    skipped         INTEGER NOT NULL,          -- because a run was going on
    missed          INTEGER NOT NULL,          -- because no server ran in time
    failed          INTEGER NOT NULL,          -- that could not be started
    last_error      TEXT,
    work_version    INTEGER,                   -- of its workflow, as it was when it was changed last; NULL: it starts tasks
    waits_since     INTEGER,                   -- since when no look came to its end; NULL: the last one did
    UNIQUE (tenant, owner, name)
) STRICT;
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_held ON schedules (leased_until) WHERE leased_until > 0;

-- What became of the newest times. A row that is `starting` is an intention that outlives a crash: the flow that it
-- starts has an id that follows from the schedule and the key, so that it is started once.
CREATE TABLE runs (
    schedule     BLOB NOT NULL,
    key          TEXT NOT NULL,    -- the time in microseconds, or `now:` and a key
    scheduled_at INTEGER NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('waiting', 'starting', 'started', 'skipped', 'failed')),
    flow         BLOB NOT NULL,    -- UUID of its root, also of one that was not started
    run          BLOB,             -- UUID
    stage        TEXT,             -- how the run ended; NULL: it has not, as far as is known
    error        TEXT,             -- why it was not started
    decided_at   INTEGER NOT NULL, -- when it became `starting` or was skipped
    at           INTEGER NOT NULL, -- of the last change
    cancels      INTEGER NOT NULL DEFAULT 0, -- 1: runs before it are cancelled before it starts
    PRIMARY KEY (schedule, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_newest ON runs (schedule, scheduled_at);
-- Those that are not over; the others are forgotten, but for the newest.
CREATE INDEX runs_open ON runs (schedule, scheduled_at)
    WHERE state IN ('waiting', 'starting') OR (state = 'started' AND stage IS NULL);
