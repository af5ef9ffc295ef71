-- Tasks that agents published through the broker, and how they ended: the same tables and columns as on SQLite, in a
-- schema of their own that all servers share. It can be rebuilt from the log, except which outcomes were delivered.
-- Times are microseconds, ids are 16 bytes. A text that a caller chose may hold U+0000, which TEXT cannot: it is stored
-- as U+0001 `0`, and U+0001 as U+0001 `1`.
-- `inbox` is a digest of tenant, actor and requester, `name` one of tenant, actor and external id: the texts may be too
-- long for an index. Statements compare the texts as well.

CREATE SCHEMA taskledger_broker;
SET LOCAL search_path = taskledger_broker;

-- One row. Every transaction that adds or removes rows locks it first, so that numbers become visible in their order.
CREATE TABLE state (
    one      BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    position BIGINT NOT NULL, -- events of the log up to here are processed
    newest   BIGINT NOT NULL  -- number of the newest outcome, even if it has been removed
);
INSERT INTO state (one, position, newest) VALUES (1, 0, 0);

-- One row for each task. Each index is written at a random place for each row, so there are as few as possible: a task
-- is found by its name, which few requesters share, and the root of a flow has the flow's id.
CREATE TABLE published (
    task_id      BYTEA NOT NULL PRIMARY KEY,
    flow_id      BYTEA NOT NULL,
    tenant       TEXT COLLATE "C" NOT NULL,
    actor        TEXT COLLATE "C" NOT NULL, -- the principal that published it
    requester    TEXT COLLATE "C" NOT NULL, -- the agent that waits for it
    external_id  TEXT COLLATE "C" NOT NULL, -- its id among agents
    inbox        BYTEA NOT NULL,
    name         BYTEA NOT NULL,
    position     BIGINT NOT NULL,           -- of the event that created it
    published_at BIGINT NOT NULL
);
CREATE INDEX published_name ON published (name, position);
CREATE INDEX published_below ON published (flow_id) WHERE flow_id <> task_id;

-- One row for each end of such a task. A task that runs again has further ends.
CREATE TABLE outcomes (
    number       BIGINT NOT NULL PRIMARY KEY, -- rises in the order of the log
    task_id      BYTEA NOT NULL,
    flow_id      BYTEA NOT NULL,
    version      BIGINT NOT NULL,             -- of the event in its flow
    position     BIGINT NOT NULL,             -- of the event in the log; several blocked tasks may share one
    tenant       TEXT COLLATE "C" NOT NULL,
    actor        TEXT COLLATE "C" NOT NULL,
    requester    TEXT COLLATE "C" NOT NULL,
    external_id  TEXT COLLATE "C" NOT NULL,
    inbox        BYTEA NOT NULL,
    name         BYTEA NOT NULL,
    at           BIGINT NOT NULL,
    delivered_at BIGINT,                      -- null: not yet
    -- 1: the task can no longer run, because of the event of another one. Becomes 0 when it starts after all: its next
    -- end is reported again.
    blocked      BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX outcomes_undelivered ON outcomes (inbox, number) WHERE delivered_at IS NULL;
CREATE INDEX outcomes_name ON outcomes (name, inbox, number);
CREATE INDEX outcomes_flow ON outcomes (flow_id);
CREATE UNIQUE INDEX outcomes_position ON outcomes (position, task_id);
CREATE INDEX outcomes_blocked ON outcomes (task_id) WHERE blocked = 1;
