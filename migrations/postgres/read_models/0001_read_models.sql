-- The read models on PostgreSQL: the same tables and columns as on SQLite. They lie in a schema of their own, found
-- through the search_path, so that a rebuild can fill the same tables in another schema. The schema may be dropped
-- while no server runs: it is rebuilt from the log.
--
-- `created_position` (the log position of the event that created the task) is the key of a task. Times are
-- microseconds, ids are 16 bytes, JSON is text. Texts compare byte by byte ("C"), as on SQLite. A text that a caller
-- chose may hold U+0000, which TEXT cannot: it is stored as U+0001 `0`, and U+0001 as U+0001 `1`.
--
-- Indexes of list filters end in the negated key: an order that only they have, so that no plan walks over the primary
-- key instead, however many tasks are believed to match.

CREATE TABLE tasks (
    created_position   BIGINT PRIMARY KEY,
    id                 BYTEA NOT NULL,
    flow_id            BYTEA NOT NULL,
    flow_no            BIGINT NOT NULL,  -- created_position of the flow's root
    ordinal            BIGINT NOT NULL,
    parent_id          BYTEA,
    parent_no          BIGINT,           -- created_position of the parent; null for a root
    user_id            TEXT COLLATE "C",
    owner              TEXT COLLATE "C", -- the current `user_id` of the flow's root; null: none
    name               TEXT COLLATE "C" NOT NULL,
    labels             TEXT,             -- JSON object; null: none
    status             TEXT COLLATE "C" NOT NULL,
    suspension         TEXT,             -- JSON, what it waits for; null: it is not suspended
    priority           BIGINT NOT NULL,
    method             TEXT COLLATE "C", -- null for a group
    start_at           BIGINT,           -- it does not start earlier; null: at any time
    deadline           BIGINT,
    progress           BIGINT NOT NULL,  -- millionths
    child_count        BIGINT NOT NULL,
    child_progress_sum BIGINT NOT NULL,  -- millionths
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
-- A task has an entry in the index of its user and in that of its owner, even if they are the same. SQLite has one
-- index for that case, but the planner of PostgreSQL chooses by cost, and would read and sort where two indexes have to
-- be merged.
CREATE INDEX tasks_user ON tasks (user_id, (-created_position)) WHERE user_id IS NOT NULL;
CREATE INDEX tasks_user_status ON tasks (user_id, status, (-created_position))
    WHERE user_id IS NOT NULL;
CREATE INDEX tasks_name ON tasks (name, (-created_position));
CREATE INDEX tasks_priority ON tasks (priority, (-created_position));
CREATE INDEX tasks_waiting ON tasks (flow_no, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX tasks_owner ON tasks (owner, (-created_position)) WHERE owner IS NOT NULL;
CREATE INDEX tasks_owner_status ON tasks (owner, status, (-created_position))
    WHERE owner IS NOT NULL;
CREATE INDEX tasks_owner_root ON tasks (owner, (-created_position))
    WHERE owner IS NOT NULL AND parent_no IS NULL;
CREATE INDEX tasks_suspended ON tasks (owner, (-created_position)) WHERE suspension IS NOT NULL;

-- The large columns that seldom change, apart from those that change with each attempt.
CREATE TABLE task_bodies (
    created_position BIGINT PRIMARY KEY,
    dependencies     TEXT COLLATE "C" NOT NULL,
    inputs           TEXT COLLATE "C" NOT NULL,
    schemas          TEXT COLLATE "C",
    params           TEXT COLLATE "C"
);

-- Labels by which tasks are found. Two rows for each: its key alone, and `key=value`, which no key can be.
CREATE TABLE task_labels (
    term        TEXT COLLATE "C" NOT NULL,
    task_no     BIGINT NOT NULL,  -- created_position of the task
    label_owner TEXT COLLATE "C", -- owner of the task; null: none
    PRIMARY KEY (task_no, term)
);

CREATE INDEX task_labels_term ON task_labels (term, (-task_no));
CREATE INDEX task_labels_owner ON task_labels (label_owner, term, (-task_no))
    WHERE label_owner IS NOT NULL;

CREATE TABLE attempts (
    task_no    BIGINT NOT NULL,  -- created_position of the task
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

-- The status of runs as their callers see it, apart from their counts, which follow every attempt.
CREATE TABLE run_status (
    run_no          BIGINT PRIMARY KEY, -- position of the event that started the run
    flow_no         BIGINT NOT NULL,
    version         BIGINT NOT NULL,    -- of that event in its flow
    has_origin      BIGINT NOT NULL,    -- 1: it was started by a message
    owner           TEXT COLLATE "C",   -- null: none
    context         TEXT COLLATE "C" NOT NULL,
    stage           TEXT COLLATE "C" NOT NULL,
    status_at       BIGINT NOT NULL,
    status_position BIGINT NOT NULL,
    waiting         BIGINT NOT NULL     -- number of questions that wait for an answer
);

CREATE INDEX run_status_flow ON run_status (flow_no);
CREATE INDEX run_status_at ON run_status (status_at, run_no);
CREATE INDEX run_status_stage ON run_status (stage, status_at, run_no);
CREATE INDEX run_status_context ON run_status (context, status_at, run_no);
CREATE INDEX run_status_owner ON run_status (owner, status_at, run_no) WHERE owner IS NOT NULL;
CREATE INDEX run_status_owner_stage ON run_status (owner, stage, status_at, run_no)
    WHERE owner IS NOT NULL;

-- Earlier statuses of runs: all pages of a list show each run with the status that it had when the first page was read.
CREATE TABLE run_past (
    run_no          BIGINT NOT NULL,
    left_position   BIGINT NOT NULL,  -- of the event with which the status ended
    owner           TEXT COLLATE "C", -- as in run_status
    stage           TEXT COLLATE "C" NOT NULL,
    status_at       BIGINT NOT NULL,
    status_position BIGINT NOT NULL,
    asked           BIGINT,           -- version of the event with the question that the status shows
    PRIMARY KEY (run_no, left_position)
);

CREATE INDEX run_past_left ON run_past (left_position);
CREATE INDEX run_past_owner ON run_past (owner, left_position) WHERE owner IS NOT NULL;

-- The dialogue of runs: messages of their callers and questions of their tasks. The texts are in the log.
CREATE TABLE run_said (
    run_no  BIGINT NOT NULL,
    version BIGINT NOT NULL,           -- of the event in its flow
    kind    TEXT COLLATE "C" NOT NULL, -- message, input, auth
    ordinal BIGINT NOT NULL,           -- of the task that asks; -1 for a message
    waits   BIGINT NOT NULL,           -- 1: a question without an answer
    PRIMARY KEY (run_no, version)
);

CREATE INDEX run_said_waits ON run_said (run_no, version) WHERE waits = 1;

-- Parts of outputs that tasks of runs have produced. The parts are in the log.
CREATE TABLE run_output (
    run_no  BIGINT NOT NULL,
    ordinal BIGINT NOT NULL, -- of the task
    number  BIGINT NOT NULL, -- of the part in its attempt, from 1
    attempt BIGINT NOT NULL, -- the latest one with so many parts
    version BIGINT NOT NULL, -- of the event in its flow
    bytes   BIGINT NOT NULL,
    PRIMARY KEY (run_no, ordinal, number)
);

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

-- A row while any run of the flow is running. Rows come and go all the time.
CREATE TABLE open_runs (
    flow_no     BIGINT PRIMARY KEY,
    flow_id     BYTEA NOT NULL,
    partition   BIGINT NOT NULL,
    next_due_at BIGINT NOT NULL -- nothing is due earlier; 0 = look at once
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

-- Exact totals for lists. Every task counts among all tasks (user_key '', role 3), for its user and for its owner, once
-- if they are the same; each time for its ten minutes of creation and for all times (bucket -1).
-- Few rows that change with every batch: no index contains what changes, so that updates stay within their page, and
-- dead rows are vacuumed soon.
CREATE TABLE task_counts (
    user_key TEXT COLLATE "C" NOT NULL,
    role     BIGINT NOT NULL, -- 0: its user, 1: its user and its owner, 2: its owner, 3: all tasks
    bucket   BIGINT NOT NULL,
    status   TEXT COLLATE "C" NOT NULL,
    priority BIGINT NOT NULL,
    is_root  BIGINT NOT NULL,
    n        BIGINT NOT NULL,
    PRIMARY KEY (user_key, role, bucket, status, priority, is_root)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

-- Where in the order of creation the tasks of ten minutes are (never narrowed).
CREATE TABLE created_buckets (
    bucket         BIGINT PRIMARY KEY,
    first_position BIGINT NOT NULL,
    last_position  BIGINT NOT NULL
) WITH (fillfactor = 50);

-- Flows that are folded no further, because one of their events cannot be read or folded.
CREATE TABLE damaged_flows (
    flow        BYTEA NOT NULL PRIMARY KEY,
    position    BIGINT NOT NULL, -- of the first event that is not folded
    is_readable BIGINT NOT NULL, -- 1: it contradicts those before it; 0: it cannot be read
    reason      TEXT NOT NULL
);

-- One row that changes with every batch. Also the gate between readers and the end of a rebuild: every reader first
-- takes a weak lock on it.
CREATE TABLE checkpoints (
    name     TEXT COLLATE "C" PRIMARY KEY,
    version  BIGINT NOT NULL,
    position BIGINT NOT NULL,
    event    BYTEA -- id of the event at the position; another event there means another log. Null at position 0.
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
