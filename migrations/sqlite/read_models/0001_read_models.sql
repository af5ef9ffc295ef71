-- The read models. The file may be deleted at any time: it is rebuilt from the log.
-- `created_position` (the log position of the event that created the task) is the key of a task
-- here: it is the order of creation, so every index below ends in that order, and it is an
-- integer that grows at the end of the table. Times are microseconds, ids are 16 bytes, JSON is text.

CREATE TABLE tasks (
    created_position   INTEGER PRIMARY KEY,
    id                 BLOB NOT NULL,
    flow_id            BLOB NOT NULL,
    flow_no            INTEGER NOT NULL, -- created_position of the flow's root
    ordinal            INTEGER NOT NULL,
    parent_id          BLOB,
    parent_no          INTEGER,          -- created_position of the parent; null for a root
    user_id            TEXT,
    name               TEXT NOT NULL,
    status             TEXT NOT NULL,
    priority           INTEGER NOT NULL,
    method             TEXT,             -- null for a group
    deadline           INTEGER,
    progress           INTEGER NOT NULL, -- millionths
    child_count        INTEGER NOT NULL,
    child_progress_sum INTEGER NOT NULL, -- millionths
    attempt            INTEGER NOT NULL,
    run_id             BLOB,
    next_attempt_at    INTEGER,
    created_at         INTEGER NOT NULL,
    started_at         INTEGER,
    updated_at         INTEGER NOT NULL,
    completed_at       INTEGER,
    last_position      INTEGER NOT NULL,
    error              TEXT,
    result             TEXT
) STRICT;

CREATE UNIQUE INDEX tasks_id ON tasks (id);
CREATE UNIQUE INDEX tasks_flow_ordinal ON tasks (flow_no, ordinal);
CREATE INDEX tasks_parent ON tasks (parent_no); -- roots are the null entries
CREATE INDEX tasks_status ON tasks (status);
CREATE INDEX tasks_user ON tasks (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX tasks_user_status ON tasks (user_id, status) WHERE user_id IS NOT NULL;
CREATE INDEX tasks_name ON tasks (name);
CREATE INDEX tasks_priority ON tasks (priority);
CREATE INDEX tasks_waiting ON tasks (flow_no, next_attempt_at) WHERE next_attempt_at IS NOT NULL;

-- What is large and seldom changes, apart from what changes with each attempt.
CREATE TABLE task_bodies (
    created_position INTEGER PRIMARY KEY,
    dependencies     TEXT NOT NULL,
    inputs           TEXT NOT NULL,
    schemas          TEXT,
    params           TEXT
) STRICT;

CREATE TABLE attempts (
    task_no    INTEGER NOT NULL, -- created_position of the task
    attempt    INTEGER NOT NULL,
    run_id     BLOB,
    started_at INTEGER,
    ended_at   INTEGER,
    outcome    TEXT, -- completed, failed, cancelled; null while it runs
    reason     TEXT,
    error      TEXT,
    PRIMARY KEY (task_no, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    run_no      INTEGER PRIMARY KEY, -- position of the event that started it
    run_id      BLOB NOT NULL,
    flow_id     BLOB NOT NULL,
    task_id     BLOB NOT NULL,
    kind        TEXT NOT NULL,
    state       TEXT NOT NULL,
    pending     INTEGER NOT NULL,
    in_progress INTEGER NOT NULL,
    completed   INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    cancelled   INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER
) STRICT;

CREATE UNIQUE INDEX runs_id ON runs (run_id);

-- Found through the flow's root, which has the flow's id: random keys would make every batch touch
-- the whole table.
CREATE TABLE flow_summary (
    flow_no       INTEGER PRIMARY KEY,
    flow_id       BLOB NOT NULL,
    pending       INTEGER NOT NULL,
    in_progress   INTEGER NOT NULL,
    completed     INTEGER NOT NULL,
    failed        INTEGER NOT NULL,
    cancelled     INTEGER NOT NULL,
    progress_sum  INTEGER NOT NULL, -- millionths, over all tasks
    waiting       INTEGER NOT NULL, -- tasks that wait for their next attempt
    deadlines     INTEGER NOT NULL, -- tasks with a deadline of their own
    open_runs     INTEGER NOT NULL, -- runs that have not ended
    last_position INTEGER NOT NULL,
    rootless      INTEGER NOT NULL  -- 1: its root was deleted, the rest is still being deleted
) STRICT;

-- Flows whose summary cannot be found through their root any more.
CREATE TABLE rootless_flows (
    flow_id BLOB PRIMARY KEY,
    flow_no INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A row while any run of the flow is running.
CREATE TABLE open_runs (
    flow_no     INTEGER PRIMARY KEY,
    flow_id     BLOB NOT NULL,
    partition   INTEGER NOT NULL,
    next_due_at INTEGER NOT NULL -- nothing is due earlier; 0 = look at once
) STRICT;

-- Exact totals for lists. Every task counts four times: for its user (if it has one) and for
-- everybody (user_key ''), each for its ten minutes of creation and for all times (bucket -1).
CREATE TABLE task_counts (
    user_key TEXT NOT NULL,
    bucket   INTEGER NOT NULL,
    status   TEXT NOT NULL,
    priority INTEGER NOT NULL,
    is_root  INTEGER NOT NULL,
    n        INTEGER NOT NULL,
    PRIMARY KEY (user_key, bucket, status, priority, is_root)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_counts_zero ON task_counts (n) WHERE n = 0;

-- Where in the order of creation the tasks of ten minutes lie (never narrowed).
CREATE TABLE created_buckets (
    bucket         INTEGER PRIMARY KEY,
    first_position INTEGER NOT NULL,
    last_position  INTEGER NOT NULL
) STRICT;

CREATE TABLE checkpoints (
    name     TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
