-- Webhooks: endpoints, what must be sent to them, and what became of it. In a file of its own beside the
-- log; it cannot be made again from the log. Times are microseconds, ids are 16 bytes.

-- One row. Whoever makes messages or changes what endpoints want locks it first, before any endpoint.
CREATE TABLE state (
    one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    position   INTEGER NOT NULL, -- events up to here are dealt with; -1: none was looked at yet
    generation INTEGER NOT NULL, -- rises whenever what endpoints want has changed
    messages   INTEGER NOT NULL  -- number of the newest message
) STRICT;
INSERT INTO state (one, position, generation, messages) VALUES (1, -1, 0, 0);

CREATE TABLE endpoints (
    no              INTEGER PRIMARY KEY AUTOINCREMENT,
    id              BLOB NOT NULL UNIQUE,
    url             TEXT NOT NULL,
    description     TEXT NOT NULL,
    events          TEXT,             -- JSON list of names; null: everything about tasks
    flow_id         BLOB,
    user_id         TEXT,
    is_callback     INTEGER NOT NULL,     -- 1: the callback of one execution
    run_id          BLOB,             -- of a callback whose run has started
    run_flow        BLOB,
    run_ended       INTEGER NOT NULL,     -- 1: the last notice of the run is among the deliveries
    ordering        TEXT NOT NULL,
    schedule        TEXT,             -- JSON list of seconds
    public_key      TEXT,             -- of the present secret, when it is a pair
    since           INTEGER NOT NULL,     -- events above this position
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
    next_at         INTEGER,              -- when to look at it next; null: nothing waits, or it is disabled
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT;

CREATE INDEX endpoints_next ON endpoints (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX endpoints_callbacks ON endpoints (no) WHERE is_callback = 1 AND run_ended = 0;
CREATE INDEX endpoints_finished ON endpoints (no) WHERE is_callback = 1 AND run_ended = 1;

-- Secrets that sign, the newest with the highest number. Sealed; bound to endpoint and number.
CREATE TABLE endpoint_keys (
    endpoint   INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    key_id     TEXT NOT NULL, -- of the key that seals
    sealed     BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,           -- null: the present one
    PRIMARY KEY (endpoint, number)
) STRICT;

CREATE TABLE endpoint_headers (
    endpoint INTEGER NOT NULL,
    name     TEXT NOT NULL,
    key_id   TEXT NOT NULL,
    sealed   BLOB NOT NULL,
    PRIMARY KEY (endpoint, name)
) STRICT;

-- What is told, once for all who are told of it. Numbered in the order of the log.
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
    lane        BLOB,          -- messages of one lane wait for each other; null: waits for none
    is_progress INTEGER NOT NULL,
    state       TEXT NOT NULL, -- waiting, delivered, dead, cancelled, superseded
    attempts    INTEGER NOT NULL,
    next_at     INTEGER,           -- of a waiting one that is the first of its lane
    hand_at     INTEGER,           -- an attempt was asked for by hand
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
    by_hand     INTEGER NOT NULL,
    PRIMARY KEY (delivery, number)
) STRICT;

-- Orders that happen once: repetitions get the first answer.
CREATE TABLE requests (
    key        TEXT NOT NULL PRIMARY KEY,
    delivery   INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
