-- Webhooks: endpoints, the messages to send to them, and the results. In a file of its own beside the log; it cannot be
-- rebuilt from the log. Times are microseconds, ids are 16 bytes.

-- One row. A transaction that adds messages or changes what endpoints subscribe to locks it first, before any endpoint.
CREATE TABLE state (
    one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    position   INTEGER NOT NULL,           -- events up to here are processed; -1: none was read yet
    generation INTEGER NOT NULL,           -- rises whenever what endpoints subscribe to changes
    removal    INTEGER NOT NULL DEFAULT 0, -- the last generation in which an endpoint that is no callback was removed
    messages   INTEGER NOT NULL            -- number of the newest message
) STRICT;
INSERT INTO state (one, position, generation, messages) VALUES (1, -1, 0, 0);

CREATE TABLE endpoints (
    no              INTEGER PRIMARY KEY AUTOINCREMENT,
    id              BLOB NOT NULL UNIQUE,
    owner           TEXT,                       -- null: none; users who see the flows of all users manage it
    url             TEXT NOT NULL,
    description     TEXT NOT NULL,
    events          TEXT,                       -- JSON list of names; null: everything about tasks
    about_endpoints INTEGER NOT NULL DEFAULT 0, -- 1: `events` names events about other endpoints
    flow_id         BLOB,
    user_id         TEXT,
    -- Labels that a task must have: JSON, keys with values, or null for any value. Null: no condition.
    labels          TEXT,
    is_callback     INTEGER NOT NULL,           -- 1: the callback of one execution
    run_id          BLOB,                       -- of a callback whose run has started
    run_flow        BLOB,
    run_ended       INTEGER NOT NULL,           -- 1: the last notice of the run is among the deliveries
    run_ended_at    INTEGER,                    -- when that notice was added
    -- Of a callback that receives reports of its run as a whole. Null: it receives notices about the run's tasks.
    report_name     TEXT,
    auth_scheme     TEXT,                       -- of the server's credentials, which are a sealed header
    content_type    TEXT,                       -- media type of what is sent; null: application/json
    ordering        TEXT NOT NULL,
    schedule        TEXT,                       -- JSON list of seconds
    public_key      TEXT,                       -- of the current secret, if it is a key pair
    since           INTEGER NOT NULL,           -- events above this position
    generation      INTEGER NOT NULL DEFAULT 0, -- in which it was created or last changed
    disabled_reason TEXT,
    disabled_at     INTEGER,
    failures        INTEGER NOT NULL,
    failing_since   INTEGER,
    window_since    INTEGER,
    window_attempts INTEGER NOT NULL,
    window_failures INTEGER NOT NULL,
    open_until      INTEGER,
    openings        INTEGER NOT NULL,
    lease_owner     BLOB,
    lease_token     INTEGER NOT NULL,
    lease_until     INTEGER,
    next_at         INTEGER,                    -- when to check it next; null: nothing waits, or it is disabled
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT;

CREATE INDEX endpoints_next ON endpoints (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX endpoints_callbacks ON endpoints (no) WHERE is_callback = 1 AND run_ended = 0;
CREATE INDEX endpoints_finished ON endpoints (no) WHERE is_callback = 1 AND run_ended = 1;
CREATE INDEX endpoints_generation ON endpoints (generation) WHERE is_callback = 0;
CREATE INDEX endpoints_about ON endpoints (no) WHERE about_endpoints = 1;
CREATE INDEX endpoints_owner ON endpoints (owner, no) WHERE owner IS NOT NULL;
CREATE INDEX endpoints_reports ON endpoints (run_id, no) WHERE report_name IS NOT NULL;

-- Deliveries outlive their endpoint and show its id. A row is stored as long as they are.
CREATE TABLE removed_endpoints (
    no         INTEGER NOT NULL PRIMARY KEY,
    id         BLOB NOT NULL,
    owner      TEXT, -- as in endpoints
    removed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX removed_endpoints_id ON removed_endpoints (id);
CREATE INDEX removed_endpoints_at ON removed_endpoints (removed_at);

-- Secrets that sign, the newest with the highest number. Sealed; bound to endpoint and number.
CREATE TABLE endpoint_keys (
    endpoint   INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    key_id     TEXT NOT NULL, -- of the key that seals
    sealed     BLOB NOT NULL,
    -- Made with the key that seals it. Two endpoints must not share a secret. Null: callbacks, which may.
    digest     BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,       -- null: the current one
    PRIMARY KEY (endpoint, number)
) STRICT;
CREATE INDEX endpoint_keys_digest ON endpoint_keys (digest) WHERE digest IS NOT NULL;

CREATE TABLE endpoint_headers (
    endpoint INTEGER NOT NULL,
    name     TEXT NOT NULL,
    key_id   TEXT NOT NULL,
    sealed   BLOB NOT NULL,
    PRIMARY KEY (endpoint, name)
) STRICT;

-- What is sent, once for all its endpoints. Numbered in the order of the log.
CREATE TABLE messages (
    no          INTEGER PRIMARY KEY,
    id          TEXT NOT NULL, -- `webhook-id`
    type        TEXT NOT NULL,
    task_id     BLOB,
    flow_id     BLOB,
    position    INTEGER,
    traceparent TEXT,
    body        BLOB NOT NULL, -- the exact bytes
    created_at  INTEGER NOT NULL
) STRICT;

-- One message to one endpoint.
CREATE TABLE deliveries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint    INTEGER NOT NULL,
    message     INTEGER NOT NULL,
    task_id     BLOB,
    lane        BLOB,                       -- messages of one lane wait for each other; null: it does not wait
    is_progress INTEGER NOT NULL,
    state       TEXT NOT NULL,              -- waiting, delivered, dead, cancelled, superseded
    attempts    INTEGER NOT NULL,
    recovered   INTEGER NOT NULL DEFAULT 0, -- 1: its schedule was restarted by hand
    next_at     INTEGER,                    -- if it is waiting and the first of its lane
    hand_at     INTEGER,                    -- when an attempt was requested by hand
    created_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    UNIQUE (message, endpoint)
) STRICT;

CREATE INDEX deliveries_endpoint ON deliveries (endpoint, id);
CREATE INDEX deliveries_task ON deliveries (task_id, id) WHERE task_id IS NOT NULL;
CREATE INDEX deliveries_lane ON deliveries (endpoint, lane, message) WHERE state = 'waiting';
CREATE INDEX deliveries_due ON deliveries (endpoint, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX deliveries_by_hand ON deliveries (endpoint, hand_at) WHERE hand_at IS NOT NULL;
CREATE INDEX deliveries_progress ON deliveries (endpoint, task_id) WHERE state = 'waiting' AND is_progress = 1;
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX deliveries_dead ON deliveries (endpoint, id) WHERE state = 'dead';

CREATE TABLE attempts (
    delivery    INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    status      INTEGER,
    error       TEXT,
    detail      TEXT,
    remote      TEXT,
    response    TEXT,
    cause       INTEGER NOT NULL, -- 0: the schedule, 1: requested by hand, 2: a schedule restarted by hand, 3: a test
    PRIMARY KEY (delivery, number)
) STRICT;

-- Requests that take effect once: repetitions get the first answer.
CREATE TABLE requests (
    key        TEXT NOT NULL PRIMARY KEY,
    delivery   INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
