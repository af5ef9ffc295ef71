-- Schedules and what became of their times: the same tables and columns as on SQLite, in a schema of their own that all
-- servers share. It cannot be made again from the log. Times are microseconds. `owner` is the user; empty: nobody. A
-- text that a caller chose may hold U+0000, which TEXT cannot: it is stored as U+0001 `0`, and U+0001 as U+0001 `1`.

CREATE SCHEMA taskledger_schedules;
SET LOCAL search_path = taskledger_schedules;

-- One row: whoever changes something locks it first, so that changes happen one after the other.
CREATE TABLE state (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1)
);
INSERT INTO state (one) VALUES (1);

CREATE TABLE schedules (
    id              BYTEA NOT NULL PRIMARY KEY,
    tenant          TEXT COLLATE "C" NOT NULL,
    owner           TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    actor           TEXT COLLATE "C" NOT NULL,         -- in whose name it starts runs
    scopes          TEXT COLLATE "C" NOT NULL,         -- what it may do then
    version         BIGINT NOT NULL,                   -- from 1, one more with each change
    definition      TEXT COLLATE "C" NOT NULL,         -- JSON
    paused          BIGINT NOT NULL,                   -- 0 or 1
    note            TEXT COLLATE "C",                  -- why
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    cursor          BIGINT NOT NULL,                   -- all its times up to here are dealt with
    next_at         BIGINT,                            -- its next time; NULL: there is none
    due_at          BIGINT,                            -- when a server has to look at it; NULL: never
    lease           BIGINT NOT NULL,                   -- a look or a change with an older number changes nothing any more
    leased_until    BIGINT NOT NULL,                   -- no other server looks before
    started         BIGINT NOT NULL,                   -- runs started at its times
    started_by_hand BIGINT NOT NULL,
    skipped         BIGINT NOT NULL,                   -- because a run was going on
    missed          BIGINT NOT NULL,                   -- because no server ran in time
    failed          BIGINT NOT NULL,                   -- that could not be started
    last_error      TEXT COLLATE "C",
    work_version    BIGINT,                            -- of its workflow, as it was when it was changed last; NULL: it starts tasks
    waits_since     BIGINT,                            -- since when no look came to its end; NULL: the last one did
    UNIQUE (tenant, owner, name)
);
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_held ON schedules (leased_until) WHERE leased_until > 0;

-- What became of the newest times. A row that is `starting` is an intention that outlives a crash: the flow that it
-- starts has an id that follows from the schedule and the key, so that it is started once.
CREATE TABLE runs (
    schedule     BYTEA NOT NULL,
    key          TEXT COLLATE "C" NOT NULL,         -- the time in microseconds, or `now:` and a key
    scheduled_at BIGINT NOT NULL,
    state        TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'starting', 'started', 'skipped', 'failed')),
    flow         BYTEA NOT NULL,                     -- of its root, also of one that was not started
    run          BYTEA,
    stage        TEXT COLLATE "C",                  -- how the run ended; NULL: it has not, as far as is known
    error        TEXT COLLATE "C",                  -- why it was not started
    decided_at   BIGINT NOT NULL,                   -- when it became `starting` or was skipped
    at           BIGINT NOT NULL,                   -- of the last change
    cancels      BIGINT NOT NULL DEFAULT 0,         -- 1: runs before it are cancelled before it starts
    PRIMARY KEY (schedule, key)
);
CREATE INDEX runs_newest ON runs (schedule, scheduled_at);
-- Those that are not over; the others are forgotten, but for the newest.
CREATE INDEX runs_open ON runs (schedule, scheduled_at)
    WHERE state IN ('waiting', 'starting') OR (state = 'started' AND stage IS NULL);
