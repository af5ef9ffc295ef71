-- Whom a flow belongs to: the `user_id` of its root as it is now, on each of its tasks.

ALTER TABLE tasks ADD COLUMN owner TEXT; -- null: nobody

CREATE INDEX tasks_owner ON tasks (owner) WHERE owner IS NOT NULL;
CREATE INDEX tasks_owner_status ON tasks (owner, status) WHERE owner IS NOT NULL;
CREATE INDEX tasks_owner_root ON tasks (owner) WHERE owner IS NOT NULL AND parent_no IS NULL;

-- Exact totals for lists, as before, and of what somebody owns. Every task counts for everybody
-- (user_key '', role 3), for its user and for its owner, once when they are the same; each time for its
-- ten minutes of creation and for all times (bucket -1).
DROP TABLE task_counts;

CREATE TABLE task_counts (
    user_key TEXT NOT NULL,
    role     INTEGER NOT NULL, -- 0: its user, 1: its user and its owner, 2: its owner, 3: everybody
    bucket   INTEGER NOT NULL,
    status   TEXT NOT NULL,
    priority INTEGER NOT NULL,
    is_root  INTEGER NOT NULL,
    n        INTEGER NOT NULL,
    PRIMARY KEY (user_key, role, bucket, status, priority, is_root)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_counts_zero ON task_counts (n) WHERE n = 0;
