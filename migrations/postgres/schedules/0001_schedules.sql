-- Schedules and the outcomes of their times: the same tables and columns as on SQLite, in a schema of their own that
-- all servers share. It cannot be rebuilt from the log. Times are microseconds. `owner` is the user; empty: none. A
-- text that a caller chose may hold U+0000, which TEXT cannot: it is stored as U+0001 `0`, and U+0001 as U+0001 `1`.

CREATE SCHEMA taskledger_schedules;
SET LOCAL search_path = taskledger_schedules;

-- One row. Every change locks it first, so that changes happen one after the other.
CREATE TABLE state (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1)
);
INSERT INTO state (one) VALUES (1);

CREATE TABLE schedules (
    id              BYTEA NOT NULL PRIMARY KEY,
    tenant          TEXT COLLATE "C" NOT NULL,
    owner           TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    actor           TEXT COLLATE "C" NOT NULL, -- principal that it starts runs as
    scopes          TEXT COLLATE "C" NOT NULL, -- what its runs may do
    version         BIGINT NOT NULL,           -- from 1, one more with each change
    definition      TEXT COLLATE "C" NOT NULL, -- JSON
    paused          BIGINT NOT NULL,           -- 0 or 1
    note            TEXT COLLATE "C",          -- why it is paused
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    cursor          BIGINT NOT NULL,           -- all its times up to here are processed
    next_at         BIGINT,                    -- its next time; NULL: there is none
    due_at          BIGINT,                    -- when a server has to check it; NULL: never
    lease           BIGINT NOT NULL,           -- a check or change with an older number has no effect
    leased_until    BIGINT NOT NULL,           -- no other server checks it before
    started         BIGINT NOT NULL,           -- runs started at its times
    started_by_hand BIGINT NOT NULL,
    skipped         BIGINT NOT NULL,           -- times, because a run was in progress
    missed          BIGINT NOT NULL,           -- times, because no server ran then
    failed          BIGINT NOT NULL,           -- starts that failed
    last_error      TEXT COLLATE "C",
    work_version    BIGINT,                    -- of its workflow at the last change; NULL: it starts tasks
    waits_since     BIGINT,                    -- since when no check has completed; NULL: the last one did
    UNIQUE (tenant, owner, name)
);
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_held ON schedules (leased_until) WHERE leased_until > 0;

-- The newest times and their outcomes. A row in state `starting` is an intention that survives a crash: the id of the
-- flow that it starts is derived from the schedule and the key, so that it is started once.
CREATE TABLE runs (
    schedule     BYTEA NOT NULL,
    key          TEXT COLLATE "C" NOT NULL, -- the time in microseconds, or `now:` and a key
    scheduled_at BIGINT NOT NULL,
    state        TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'starting', 'started', 'skipped', 'failed')),
    flow         BYTEA NOT NULL,            -- id of its flow, even if that was not started
    run          BYTEA,
    stage        TEXT COLLATE "C",          -- how the run ended; NULL: not known to have ended
    error        TEXT COLLATE "C",          -- why it was not started
    decided_at   BIGINT NOT NULL,           -- when it became `starting` or was skipped
    at           BIGINT NOT NULL,           -- of the last change
    cancels      BIGINT NOT NULL DEFAULT 0, -- 1: runs before it are cancelled before it starts
    PRIMARY KEY (schedule, key)
);
CREATE INDEX runs_newest ON runs (schedule, scheduled_at);
-- Times whose run is not over. The others are deleted, except the newest.
CREATE INDEX runs_open ON runs (schedule, scheduled_at)
    WHERE state IN ('waiting', 'starting') OR (state = 'started' AND stage IS NULL);

-- The editions of the time zone database with which servers have computed times. The newest row shows a server that
-- starts with another edition that it has to compute the times of all schedules again.
CREATE TABLE zone_editions (
    edition  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    noted_at BIGINT NOT NULL -- when a server last recorded it
);
