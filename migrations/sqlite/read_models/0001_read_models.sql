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
    owner              TEXT,             -- the current `user_id` of the flow's root; null: none
    name               TEXT NOT NULL,
    labels             TEXT,             -- JSON object; null: none
    status             TEXT NOT NULL,
    suspension         TEXT,             -- JSON, what it waits for; null: it is not suspended
    priority           INTEGER NOT NULL,
    method             TEXT,             -- null for a group
    start_at           INTEGER,          -- it does not start earlier; null: at any time
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
CREATE INDEX tasks_name ON tasks (name);
CREATE INDEX tasks_priority ON tasks (priority);
CREATE INDEX tasks_waiting ON tasks (flow_no, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX tasks_owner_root ON tasks (owner) WHERE owner IS NOT NULL AND parent_no IS NULL;
CREATE INDEX tasks_suspended ON tasks (owner) WHERE suspension IS NOT NULL;
-- A task whose user is its owner, as is usual and as each root is, has one entry in an index for lists of both.
CREATE INDEX tasks_both ON tasks (owner) WHERE owner = user_id;
CREATE INDEX tasks_both_status ON tasks (owner, status) WHERE owner = user_id;
CREATE INDEX tasks_user ON tasks (user_id) WHERE user_id IS NOT NULL AND user_id IS NOT owner;
CREATE INDEX tasks_user_status ON tasks (user_id, status)
    WHERE user_id IS NOT NULL AND user_id IS NOT owner;
CREATE INDEX tasks_owner ON tasks (owner) WHERE owner IS NOT NULL AND owner IS NOT user_id;
CREATE INDEX tasks_owner_status ON tasks (owner, status)
    WHERE owner IS NOT NULL AND owner IS NOT user_id;

-- The large columns that seldom change, apart from those that change with each attempt.
CREATE TABLE task_bodies (
    created_position INTEGER PRIMARY KEY,
    dependencies     TEXT NOT NULL,
    inputs           TEXT NOT NULL,
    schemas          TEXT,
    params           TEXT
) STRICT;

-- Labels by which tasks are found. Two rows for each: its key alone, and `key=value`, which no key can be.
CREATE TABLE task_labels (
    term        TEXT NOT NULL,
    task_no     INTEGER NOT NULL, -- created_position of the task
    label_owner TEXT,             -- owner of the task; null: none
    PRIMARY KEY (term, task_no)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_labels_task ON task_labels (task_no);
CREATE INDEX task_labels_owner ON task_labels (label_owner, term, task_no)
    WHERE label_owner IS NOT NULL;

CREATE TABLE attempts (
    task_no    INTEGER NOT NULL, -- created_position of the task
    attempt    INTEGER NOT NULL,
    run_id     BLOB,
    started_at INTEGER,
    ended_at   INTEGER,
    outcome    TEXT,             -- completed, failed, cancelled; null while it runs
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

-- The status of runs as their callers see it, apart from their counts, which follow every attempt.
CREATE TABLE run_status (
    run_no          INTEGER PRIMARY KEY, -- position of the event that started the run
    flow_no         INTEGER NOT NULL,
    version         INTEGER NOT NULL,    -- of that event in its flow
    has_origin      INTEGER NOT NULL,    -- 1: it was started by a message
    owner           TEXT,                -- null: none
    context         TEXT NOT NULL,
    stage           TEXT NOT NULL,
    status_at       INTEGER NOT NULL,
    status_position INTEGER NOT NULL,
    waiting         INTEGER NOT NULL     -- number of questions that wait for an answer
) STRICT;

CREATE INDEX run_status_flow ON run_status (flow_no);
CREATE INDEX run_status_at ON run_status (status_at, run_no);
CREATE INDEX run_status_stage ON run_status (stage, status_at, run_no);
CREATE INDEX run_status_context ON run_status (context, status_at, run_no);
CREATE INDEX run_status_owner ON run_status (owner, status_at, run_no) WHERE owner IS NOT NULL;
CREATE INDEX run_status_owner_stage ON run_status (owner, stage, status_at, run_no)
    WHERE owner IS NOT NULL;

-- Earlier statuses of runs: all pages of a list show each run with the status that it had when the first page was read.
CREATE TABLE run_past (
    run_no          INTEGER NOT NULL,
    left_position   INTEGER NOT NULL, -- of the event with which the status ended
    owner           TEXT,             -- as in run_status
    stage           TEXT NOT NULL,
    status_at       INTEGER NOT NULL,
    status_position INTEGER NOT NULL,
    asked           INTEGER,          -- version of the event with the question that the status shows
    PRIMARY KEY (run_no, left_position)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_past_left ON run_past (left_position);
CREATE INDEX run_past_owner ON run_past (owner, left_position) WHERE owner IS NOT NULL;

-- The dialogue of runs: messages of their callers and questions of their tasks. The texts are in the log.
CREATE TABLE run_said (
    run_no  INTEGER NOT NULL,
    version INTEGER NOT NULL, -- of the event in its flow
    kind    TEXT NOT NULL,    -- message, input, auth
    ordinal INTEGER NOT NULL, -- of the task that asks; -1 for a message
    waits   INTEGER NOT NULL, -- 1: a question without an answer
    PRIMARY KEY (run_no, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_said_waits ON run_said (run_no, version) WHERE waits = 1;

-- Parts of outputs that tasks of runs have produced. The parts are in the log.
CREATE TABLE run_output (
    run_no  INTEGER NOT NULL,
    ordinal INTEGER NOT NULL, -- of the task
    number  INTEGER NOT NULL, -- of the part in its attempt, from 1
    attempt INTEGER NOT NULL, -- the latest one with so many parts
    version INTEGER NOT NULL, -- of the event in its flow
    bytes   INTEGER NOT NULL,
    PRIMARY KEY (run_no, ordinal, number)
) STRICT, WITHOUT ROWID;

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

-- Exact totals for lists. Every task counts among all tasks (user_key '', role 3), for its user and for its owner, once
-- if they are the same; each time for its ten minutes of creation and for all times (bucket -1).
CREATE TABLE task_counts (
    user_key TEXT NOT NULL,
    role     INTEGER NOT NULL, -- 0: its user, 1: its user and its owner, 2: its owner, 3: all tasks
    bucket   INTEGER NOT NULL,
    status   TEXT NOT NULL,
    priority INTEGER NOT NULL,
    is_root  INTEGER NOT NULL,
    n        INTEGER NOT NULL,
    PRIMARY KEY (user_key, role, bucket, status, priority, is_root)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_counts_zero ON task_counts (n) WHERE n = 0;

-- Where in the order of creation the tasks of ten minutes are (never narrowed).
CREATE TABLE created_buckets (
    bucket         INTEGER PRIMARY KEY,
    first_position INTEGER NOT NULL,
    last_position  INTEGER NOT NULL
) STRICT;

-- Flows that are folded no further, because one of their events cannot be read or folded.
CREATE TABLE damaged_flows (
    flow        BLOB NOT NULL PRIMARY KEY,
    position    INTEGER NOT NULL, -- of the first event that is not folded
    is_readable INTEGER NOT NULL, -- 1: it contradicts those before it; 0: it cannot be read
    reason      TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE checkpoints (
    name     TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    position INTEGER NOT NULL,
    event    BLOB -- id of the event at the position; another event there means another log. Null at position 0.
) STRICT, WITHOUT ROWID;
