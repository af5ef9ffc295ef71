-- Tasks that agents published through the broker, and how they ended. In a file of its own beside the log. It can be
-- made again from the log, except what was delivered. Times are microseconds, ids are 16 bytes.
-- `inbox` is a digest of tenant, actor and requester, `name` one of tenant, actor and external id: the texts may be too
-- long for an index. Statements compare the texts as well.

-- One row: whoever notes or removes something locks it first, so that numbers become visible in their order.
CREATE TABLE state (
    one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    position INTEGER NOT NULL, -- events of the log up to here are dealt with
    newest   INTEGER NOT NULL  -- number of the newest outcome, whether it is still there or not
) STRICT;
INSERT INTO state (one, position, newest) VALUES (1, 0, 0);

-- One row for each task.
CREATE TABLE published (
    task_id      BLOB NOT NULL PRIMARY KEY,
    flow_id      BLOB NOT NULL,
    tenant       TEXT NOT NULL,
    actor        TEXT NOT NULL,    -- the principal that published it
    requester    TEXT NOT NULL,    -- the agent that waits for it
    external_id  TEXT NOT NULL,    -- what agents call it
    inbox        BLOB NOT NULL,
    name         BLOB NOT NULL,
    position     INTEGER NOT NULL, -- of the event that created it
    published_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX published_name ON published (name, position);
CREATE INDEX published_inbox ON published (name, inbox, position);
CREATE INDEX published_flow ON published (flow_id);

-- One row for each end of such a task. A task that is run again has further ends.
CREATE TABLE outcomes (
    number       INTEGER NOT NULL PRIMARY KEY, -- rises in the order of the log
    task_id      BLOB NOT NULL,
    flow_id      BLOB NOT NULL,
    version      INTEGER NOT NULL, -- of the event in its flow
    position     INTEGER NOT NULL, -- of the event in the log
    tenant       TEXT NOT NULL,
    actor        TEXT NOT NULL,
    requester    TEXT NOT NULL,
    external_id  TEXT NOT NULL,
    inbox        BLOB NOT NULL,
    name         BLOB NOT NULL,
    at           INTEGER NOT NULL,
    delivered_at INTEGER           -- null: not yet
) STRICT;
CREATE UNIQUE INDEX outcomes_position ON outcomes (position);
CREATE INDEX outcomes_undelivered ON outcomes (inbox, number) WHERE delivered_at IS NULL;
CREATE INDEX outcomes_name ON outcomes (name, inbox, number);
CREATE INDEX outcomes_flow ON outcomes (flow_id);
