-- A task that cannot run any more comes to its end with the event of another one, which several may share.
DROP INDEX outcomes_position;
CREATE UNIQUE INDEX outcomes_position ON outcomes (position, task_id);
ALTER TABLE outcomes ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0; -- 1: it is such an end
-- Each index of published tasks is written at another place for each of them: two are enough. A task is found by its
-- name, of which few requesters have the same; the root of a flow has its id.
DROP INDEX published_inbox;
DROP INDEX published_flow;
CREATE INDEX published_below ON published (flow_id) WHERE flow_id <> task_id;
