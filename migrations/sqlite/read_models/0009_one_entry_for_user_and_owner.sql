-- A task whose user is its owner, which is usual, has one entry in an index for lists of both. A root has always: its
-- user is the owner.

DROP INDEX tasks_user;
DROP INDEX tasks_user_status;
DROP INDEX tasks_owner;
DROP INDEX tasks_owner_status;

CREATE INDEX tasks_both ON tasks (owner) WHERE owner = user_id;
CREATE INDEX tasks_both_status ON tasks (owner, status) WHERE owner = user_id;
CREATE INDEX tasks_user ON tasks (user_id) WHERE user_id IS NOT NULL AND user_id IS NOT owner;
CREATE INDEX tasks_user_status ON tasks (user_id, status)
    WHERE user_id IS NOT NULL AND user_id IS NOT owner;
CREATE INDEX tasks_owner ON tasks (owner) WHERE owner IS NOT NULL AND owner IS NOT user_id;
CREATE INDEX tasks_owner_status ON tasks (owner, status)
    WHERE owner IS NOT NULL AND owner IS NOT user_id;
