-- Tasks that agents published through the broker, and how they ended: the same tables and columns as on SQLite, in a
-- schema of their own that all servers share. It can be made again from the log, except what was delivered. Times are
-- microseconds, ids are 16 bytes. A text that a caller chose may hold U+0000, which TEXT cannot: it is stored as U+0001
-- `0`, and U+0001 as U+0001 `1`.
-- `inbox` is a digest of tenant, actor and requester, `name` one of tenant, actor and external id: the texts may be too
-- long for an index. Statements compare the texts as well.

CREATE SCHEMA taskledger_broker;
SET LOCAL search_path = taskledger_broker;

-- One row: whoever notes or removes something locks it first, so that numbers become visible in their order.
CREATE TABLE state (
    one      BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    position BIGINT NOT NULL, -- events of the log up to here are dealt with
    newest   BIGINT NOT NULL  -- number of the newest outcome, whether it is still there or not
);
INSERT INTO state (one, position, newest) VALUES (1, 0, 0);

-- One row for each task.
CREATE TABLE published (
    task_id      BYTEA NOT NULL PRIMARY KEY,
    flow_id      BYTEA NOT NULL,
    tenant       TEXT COLLATE "C" NOT NULL,
    actor        TEXT COLLATE "C" NOT NULL, -- the principal that published it
    requester    TEXT COLLATE "C" NOT NULL, -- the agent that waits for it
    external_id  TEXT COLLATE "C" NOT NULL, -- what agents call it
    inbox        BYTEA NOT NULL,
    name         BYTEA NOT NULL,
    position     BIGINT NOT NULL,           -- of the event that created it
    published_at BIGINT NOT NULL
);
CREATE INDEX published_name ON published (name, position);
CREATE INDEX published_inbox ON published (name, inbox, position);
CREATE INDEX published_flow ON published (flow_id);

-- One row for each end of such a task. A task that is run again has further ends.
CREATE TABLE outcomes (
    number       BIGINT NOT NULL PRIMARY KEY, -- rises in the order of the log
    task_id      BYTEA NOT NULL,
    flow_id      BYTEA NOT NULL,
    version      BIGINT NOT NULL,             -- of the event in its flow
    position     BIGINT NOT NULL,             -- of the event in the log
    tenant       TEXT COLLATE "C" NOT NULL,
    actor        TEXT COLLATE "C" NOT NULL,
    requester    TEXT COLLATE "C" NOT NULL,
    external_id  TEXT COLLATE "C" NOT NULL,
    inbox        BYTEA NOT NULL,
    name         BYTEA NOT NULL,
    at           BIGINT NOT NULL,
    delivered_at BIGINT                       -- null: not yet
);
CREATE UNIQUE INDEX outcomes_position ON outcomes (position);
CREATE INDEX outcomes_undelivered ON outcomes (inbox, number) WHERE delivered_at IS NULL;
CREATE INDEX outcomes_name ON outcomes (name, inbox, number);
CREATE INDEX outcomes_flow ON outcomes (flow_id);
