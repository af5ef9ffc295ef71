-- `blocked` becomes 0 when such a task begins after all: what is said of it from then on is news.
SET LOCAL search_path = taskledger_broker;

CREATE INDEX outcomes_blocked ON outcomes (task_id) WHERE blocked = 1;
