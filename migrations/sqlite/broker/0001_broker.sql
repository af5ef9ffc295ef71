-- Tasks that agents published through the broker, and how they ended. In a file of its own beside the log. It can be
-- rebuilt from the log, except which outcomes were delivered. Times are microseconds, ids are 16 bytes.
-- `inbox` is a digest of tenant, actor and requester, `name` one of tenant, actor and external id: the texts may be too
-- long for an index. Statements compare the texts as well.

-- One row. Every transaction that adds or removes rows locks it first, so that numbers become visible in their order.
CREATE TABLE state (
    one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    position INTEGER NOT NULL, -- events of the log up to here are processed
    newest   INTEGER NOT NULL  -- number of the newest outcome, even if it has been removed
) STRICT;
INSERT INTO state (one, position, newest) VALUES (1, 0, 0);

-- One row for each task. Ids are random, so the rows are in the order in which they are added: they share pages, and
-- only the indexes are written at a random place for each row. There are as few of those as possible: a task is found
-- by its name, which few requesters share, and the root of a flow has the flow's id.
CREATE TABLE published (
    task_id      BLOB NOT NULL,
    flow_id      BLOB NOT NULL,
    tenant       TEXT NOT NULL,
    actor        TEXT NOT NULL,    -- the principal that published it
    requester    TEXT NOT NULL,    -- the agent that waits for it
    external_id  TEXT NOT NULL,    -- its id among agents
    inbox        BLOB NOT NULL,
    name         BLOB NOT NULL,
    position     INTEGER NOT NULL, -- of the event that created it
    published_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX published_task ON published (task_id);
CREATE INDEX published_name ON published (name, position);
CREATE INDEX published_below ON published (flow_id) WHERE flow_id <> task_id;

-- One row for each end of such a task. A task that runs again has further ends.
CREATE TABLE outcomes (
    number       INTEGER NOT NULL PRIMARY KEY, -- rises in the order of the log
    task_id      BLOB NOT NULL,
    flow_id      BLOB NOT NULL,
    version      INTEGER NOT NULL,             -- of the event in its flow
    position     INTEGER NOT NULL,             -- of the event in the log; several blocked tasks may share one
    tenant       TEXT NOT NULL,
    actor        TEXT NOT NULL,
    requester    TEXT NOT NULL,
    external_id  TEXT NOT NULL,
    inbox        BLOB NOT NULL,
    name         BLOB NOT NULL,
    at           INTEGER NOT NULL,
    delivered_at INTEGER,                      -- null: not yet
    -- 1: the task can no longer run, because of the event of another one. Becomes 0 when it starts after all: its next
    -- end is reported again.
    blocked      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX outcomes_undelivered ON outcomes (inbox, number) WHERE delivered_at IS NULL;
CREATE INDEX outcomes_name ON outcomes (name, inbox, number);
CREATE INDEX outcomes_flow ON outcomes (flow_id);
CREATE UNIQUE INDEX outcomes_position ON outcomes (position, task_id);
CREATE INDEX outcomes_blocked ON outcomes (task_id) WHERE blocked = 1;
