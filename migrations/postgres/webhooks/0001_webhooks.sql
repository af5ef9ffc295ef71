-- Webhooks: endpoints, the messages to send to them, and the results: the same tables and columns as on SQLite, in a
-- schema of their own that all servers share. It cannot be rebuilt from the log. Times are microseconds, ids are 16
-- bytes. A text that a caller chose may hold U+0000, which TEXT cannot: it is stored as U+0001 `0`, and U+0001 as
-- U+0001 `1`.

CREATE SCHEMA taskledger_webhooks;
SET LOCAL search_path = taskledger_webhooks;

-- One row. A transaction that adds messages or changes what endpoints subscribe to locks it first, before any endpoint.
CREATE TABLE state (
    one        BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    position   BIGINT NOT NULL,           -- events up to here are processed; -1: none was read yet
    generation BIGINT NOT NULL,           -- rises whenever what endpoints subscribe to changes
    removal    BIGINT NOT NULL DEFAULT 0, -- the last generation in which an endpoint that is no callback was removed
    messages   BIGINT NOT NULL            -- number of the newest message
);
INSERT INTO state (one, position, generation, messages) VALUES (1, -1, 0, 0);

CREATE TABLE endpoints (
    no              BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id              BYTEA NOT NULL UNIQUE,
    owner           TEXT,                      -- null: none; users who see the flows of all users manage it
    url             TEXT COLLATE "C" NOT NULL,
    description     TEXT COLLATE "C" NOT NULL,
    events          TEXT COLLATE "C",          -- JSON list of names; null: everything about tasks
    about_endpoints BIGINT NOT NULL DEFAULT 0, -- 1: `events` names events about other endpoints
    flow_id         BYTEA,
    user_id         TEXT COLLATE "C",
    -- Labels that a task must have: JSON, keys with values, or null for any value. Null: no condition.
    labels          TEXT,
    is_callback     BIGINT NOT NULL,           -- 1: the callback of one execution
    run_id          BYTEA,                     -- of a callback whose run has started
    run_flow        BYTEA,
    run_ended       BIGINT NOT NULL,           -- 1: the last notice of the run is among the deliveries
    run_ended_at    BIGINT,                    -- when that notice was added
    -- Of a callback that receives reports of its run as a whole. Null: it receives notices about the run's tasks.
    report_name     TEXT,
    auth_scheme     TEXT,                      -- of the server's credentials, which are a sealed header
    content_type    TEXT,                      -- media type of what is sent; null: application/json
    ordering        TEXT COLLATE "C" NOT NULL,
    schedule        TEXT COLLATE "C",          -- JSON list of seconds
    public_key      TEXT COLLATE "C",          -- of the current secret, if it is a key pair
    since           BIGINT NOT NULL,           -- events above this position
    generation      BIGINT NOT NULL DEFAULT 0, -- in which it was created or last changed
    disabled_reason TEXT COLLATE "C",
    disabled_at     BIGINT,
    failures        BIGINT NOT NULL,
    failing_since   BIGINT,
    window_since    BIGINT,
    window_attempts BIGINT NOT NULL,
    window_failures BIGINT NOT NULL,
    open_until      BIGINT,
    openings        BIGINT NOT NULL,
    lease_owner     BYTEA,
    lease_token     BIGINT NOT NULL,
    lease_until     BIGINT,
    next_at         BIGINT,                    -- when to check it next; null: nothing waits, or it is disabled
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL
);

CREATE INDEX endpoints_next ON endpoints (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX endpoints_callbacks ON endpoints (no) WHERE is_callback = 1 AND run_ended = 0;
CREATE INDEX endpoints_finished ON endpoints (no) WHERE is_callback = 1 AND run_ended = 1;
CREATE INDEX endpoints_generation ON endpoints (generation) WHERE is_callback = 0;
CREATE INDEX endpoints_about ON endpoints (no) WHERE about_endpoints = 1;
CREATE INDEX endpoints_owner ON endpoints (owner, no) WHERE owner IS NOT NULL;
CREATE INDEX endpoints_reports ON endpoints (run_id, no) WHERE report_name IS NOT NULL;

-- Deliveries outlive their endpoint and show its id. A row is stored as long as they are.
CREATE TABLE removed_endpoints (
    no         BIGINT NOT NULL PRIMARY KEY,
    id         BYTEA NOT NULL,
    owner      TEXT, -- as in endpoints
    removed_at BIGINT NOT NULL
);
CREATE INDEX removed_endpoints_id ON removed_endpoints (id);
CREATE INDEX removed_endpoints_at ON removed_endpoints (removed_at);

-- Secrets that sign, the newest with the highest number. Sealed; bound to endpoint and number.
CREATE TABLE endpoint_keys (
    endpoint   BIGINT NOT NULL,
    number     BIGINT NOT NULL,
    key_id     TEXT COLLATE "C" NOT NULL, -- of the key that seals
    sealed     BYTEA NOT NULL,
    -- Made with the key that seals it. Two endpoints must not share a secret. Null: callbacks, which may.
    digest     BYTEA,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,                    -- null: the current one
    PRIMARY KEY (endpoint, number)
);
CREATE INDEX endpoint_keys_digest ON endpoint_keys (digest) WHERE digest IS NOT NULL;

CREATE TABLE endpoint_headers (
    endpoint BIGINT NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    key_id   TEXT COLLATE "C" NOT NULL,
    sealed   BYTEA NOT NULL,
    PRIMARY KEY (endpoint, name)
);

-- What is sent, once for all its endpoints. Numbered in the order of the log.
CREATE TABLE messages (
    no          BIGINT NOT NULL PRIMARY KEY,
    id          TEXT COLLATE "C" NOT NULL, -- `webhook-id`
    type        TEXT COLLATE "C" NOT NULL,
    task_id     BYTEA,
    flow_id     BYTEA,
    position    BIGINT,
    traceparent TEXT COLLATE "C",
    body        BYTEA NOT NULL,            -- the exact bytes
    created_at  BIGINT NOT NULL
);

-- One message to one endpoint.
CREATE TABLE deliveries (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint    BIGINT NOT NULL,
    message     BIGINT NOT NULL,
    task_id     BYTEA,
    lane        BYTEA,                     -- messages of one lane wait for each other; null: it does not wait
    is_progress BIGINT NOT NULL,
    state       TEXT COLLATE "C" NOT NULL, -- waiting, delivered, dead, cancelled, superseded
    attempts    BIGINT NOT NULL,
    recovered   BIGINT NOT NULL DEFAULT 0, -- 1: its schedule was restarted by hand
    next_at     BIGINT,                    -- if it is waiting and the first of its lane
    hand_at     BIGINT,                    -- when an attempt was requested by hand
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT,
    UNIQUE (message, endpoint)
);

CREATE INDEX deliveries_endpoint ON deliveries (endpoint, id);
CREATE INDEX deliveries_task ON deliveries (task_id, id) WHERE task_id IS NOT NULL;
CREATE INDEX deliveries_lane ON deliveries (endpoint, lane, message) WHERE state = 'waiting';
CREATE INDEX deliveries_due ON deliveries (endpoint, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX deliveries_by_hand ON deliveries (endpoint, hand_at) WHERE hand_at IS NOT NULL;
CREATE INDEX deliveries_progress ON deliveries (endpoint, task_id) WHERE state = 'waiting' AND is_progress = 1;
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX deliveries_dead ON deliveries (endpoint, id) WHERE state = 'dead';

CREATE TABLE attempts (
    delivery    BIGINT NOT NULL,
    number      BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    status      BIGINT,
    error       TEXT COLLATE "C",
    detail      TEXT COLLATE "C",
    remote      TEXT COLLATE "C",
    response    TEXT COLLATE "C",
    cause       BIGINT NOT NULL, -- 0: the schedule, 1: requested by hand, 2: a schedule restarted by hand, 3: a test
    PRIMARY KEY (delivery, number)
);

-- Requests that take effect once: repetitions get the first answer.
CREATE TABLE requests (
    key        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    delivery   BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
