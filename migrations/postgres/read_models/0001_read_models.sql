-- The read models on PostgreSQL: the same tables and columns as on SQLite. They lie in a schema of
-- their own, found through the search_path, so that a rebuild can fill the same tables beside them.
-- The schema may be dropped while no server runs: it is rebuilt from the log.
--
-- `created_position` (the log position of the event that created the task) is the key of a task. Times
-- are microseconds, ids are 16 bytes, JSON is text. Texts compare byte by byte ("C"), as on SQLite.
-- A text that a caller chose may hold U+0000, which TEXT cannot: it is stored as U+0001 `0`, and
-- U+0001 as U+0001 `1`.
--
-- Indexes of list filters end in the negated key: an order that only they have, so that no plan walks
-- over the primary key instead, however many tasks are believed to match.

CREATE TABLE tasks (
    created_position   BIGINT PRIMARY KEY,
    id                 BYTEA NOT NULL,
    flow_id            BYTEA NOT NULL,
    flow_no            BIGINT NOT NULL, -- created_position of the flow's root
    ordinal            BIGINT NOT NULL,
    parent_id          BYTEA,
    parent_no          BIGINT,          -- created_position of the parent; null for a root
    user_id            TEXT COLLATE "C",
    name               TEXT COLLATE "C" NOT NULL,
    status             TEXT COLLATE "C" NOT NULL,
    priority           BIGINT NOT NULL,
    method             TEXT COLLATE "C", -- null for a group
    deadline           BIGINT,
    progress           BIGINT NOT NULL, -- millionths
    child_count        BIGINT NOT NULL,
    child_progress_sum BIGINT NOT NULL, -- millionths
    attempt            BIGINT NOT NULL,
    run_id             BYTEA,
    next_attempt_at    BIGINT,
    created_at         BIGINT NOT NULL,
    started_at         BIGINT,
    updated_at         BIGINT NOT NULL,
    completed_at       BIGINT,
    last_position      BIGINT NOT NULL,
    error              TEXT COLLATE "C",
    result             TEXT COLLATE "C"
) WITH (fillfactor = 80); -- progress and sums over children change in place, within their page

CREATE UNIQUE INDEX tasks_id ON tasks (id);
CREATE UNIQUE INDEX tasks_flow_ordinal ON tasks (flow_no, ordinal);
CREATE INDEX tasks_parent ON tasks (parent_no, (-created_position)) WHERE parent_no IS NOT NULL;
CREATE INDEX tasks_root ON tasks ((-created_position)) WHERE parent_no IS NULL;
CREATE INDEX tasks_status ON tasks (status, (-created_position));
CREATE INDEX tasks_user ON tasks (user_id, (-created_position)) WHERE user_id IS NOT NULL;
CREATE INDEX tasks_user_status ON tasks (user_id, status, (-created_position))
    WHERE user_id IS NOT NULL;
CREATE INDEX tasks_name ON tasks (name, (-created_position));
CREATE INDEX tasks_priority ON tasks (priority, (-created_position));
CREATE INDEX tasks_waiting ON tasks (flow_no, next_attempt_at) WHERE next_attempt_at IS NOT NULL;

-- What is large and seldom changes, apart from what changes with each attempt.
CREATE TABLE task_bodies (
    created_position BIGINT PRIMARY KEY,
    dependencies     TEXT COLLATE "C" NOT NULL,
    inputs           TEXT COLLATE "C" NOT NULL,
    schemas          TEXT COLLATE "C",
    params           TEXT COLLATE "C"
);

CREATE TABLE attempts (
    task_no    BIGINT NOT NULL, -- created_position of the task
    attempt    BIGINT NOT NULL,
    run_id     BYTEA,
    started_at BIGINT,
    ended_at   BIGINT,
    outcome    TEXT COLLATE "C", -- completed, failed, cancelled; null while it runs
    reason     TEXT COLLATE "C",
    error      TEXT COLLATE "C",
    PRIMARY KEY (task_no, attempt)
) WITH (fillfactor = 85); -- its end is written over its beginning

CREATE TABLE runs (
    run_no      BIGINT PRIMARY KEY, -- position of the event that started it
    run_id      BYTEA NOT NULL,
    flow_id     BYTEA NOT NULL,
    task_id     BYTEA NOT NULL,
    kind        TEXT COLLATE "C" NOT NULL,
    state       TEXT COLLATE "C" NOT NULL,
    pending     BIGINT NOT NULL,
    in_progress BIGINT NOT NULL,
    completed   BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    cancelled   BIGINT NOT NULL,
    started_at  BIGINT NOT NULL,
    ended_at    BIGINT
) WITH (fillfactor = 70); -- its counts follow every attempt

CREATE UNIQUE INDEX runs_id ON runs (run_id);

-- Found through the flow's root, which has the flow's id: random keys would make every batch touch
-- the whole table.
CREATE TABLE flow_summary (
    flow_no       BIGINT PRIMARY KEY,
    flow_id       BYTEA NOT NULL,
    pending       BIGINT NOT NULL,
    in_progress   BIGINT NOT NULL,
    completed     BIGINT NOT NULL,
    failed        BIGINT NOT NULL,
    cancelled     BIGINT NOT NULL,
    progress_sum  BIGINT NOT NULL, -- millionths, over all tasks
    waiting       BIGINT NOT NULL, -- tasks that wait for their next attempt
    deadlines     BIGINT NOT NULL, -- tasks with a deadline of their own
    open_runs     BIGINT NOT NULL, -- runs that have not ended
    last_position BIGINT NOT NULL,
    rootless      BIGINT NOT NULL  -- 1: its root was deleted, the rest is still being deleted
) WITH (fillfactor = 70); -- changes with every batch that touches the flow

-- Flows whose summary cannot be found through their root any more.
CREATE TABLE rootless_flows (
    flow_id BYTEA PRIMARY KEY,
    flow_no BIGINT NOT NULL
);

-- A row while any run of the flow is running. Comes and goes all the time.
CREATE TABLE open_runs (
    flow_no     BIGINT PRIMARY KEY,
    flow_id     BYTEA NOT NULL,
    partition   BIGINT NOT NULL,
    next_due_at BIGINT NOT NULL -- nothing is due earlier; 0 = look at once
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

-- Exact totals for lists. Every task counts four times: for its user (if it has one) and for
-- everybody (user_key ''), each for its ten minutes of creation and for all times (bucket -1).
-- Few rows that change with every batch: no index holds what changes, so that updates stay within
-- their page, and what they leave is tidied up soon.
CREATE TABLE task_counts (
    user_key TEXT COLLATE "C" NOT NULL,
    bucket   BIGINT NOT NULL,
    status   TEXT COLLATE "C" NOT NULL,
    priority BIGINT NOT NULL,
    is_root  BIGINT NOT NULL,
    n        BIGINT NOT NULL,
    PRIMARY KEY (user_key, bucket, status, priority, is_root)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

-- Where in the order of creation the tasks of ten minutes lie (never narrowed).
CREATE TABLE created_buckets (
    bucket         BIGINT PRIMARY KEY,
    first_position BIGINT NOT NULL,
    last_position  BIGINT NOT NULL
) WITH (fillfactor = 50);

-- One row that changes with every batch. Also the gate between readers and a rebuild that is done:
-- whoever reads locks it weakly first.
CREATE TABLE checkpoints (
    name     TEXT COLLATE "C" PRIMARY KEY,
    version  BIGINT NOT NULL,
    position BIGINT NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
