-- `blocked` becomes 0 when such a task begins after all: what is said of it from then on is news.
CREATE INDEX outcomes_blocked ON outcomes (task_id) WHERE blocked = 1;
-- Ids are random: rows in the order in which they are added share pages, and what is small, the index, is what is written at
-- another place for each of them.
CREATE TABLE published_in_order (
    task_id      BLOB NOT NULL,
    flow_id      BLOB NOT NULL,
    tenant       TEXT NOT NULL,
    actor        TEXT NOT NULL,
    requester    TEXT NOT NULL,
    external_id  TEXT NOT NULL,
    inbox        BLOB NOT NULL,
    name         BLOB NOT NULL,
    position     INTEGER NOT NULL,
    published_at INTEGER NOT NULL
) STRICT;
-- Before the rows come, which they do in the order of their ids: nothing is sorted in temporary files.
DROP INDEX published_name;
DROP INDEX published_below;
CREATE UNIQUE INDEX published_task ON published_in_order (task_id);
CREATE INDEX published_name ON published_in_order (name, position);
CREATE INDEX published_below ON published_in_order (flow_id) WHERE flow_id <> task_id;
INSERT INTO published_in_order
    (task_id, flow_id, tenant, actor, requester, external_id, inbox, name, position, published_at)
    SELECT task_id, flow_id, tenant, actor, requester, external_id, inbox, name, position, published_at
    FROM published;
DROP TABLE published;
ALTER TABLE published_in_order RENAME TO published;
