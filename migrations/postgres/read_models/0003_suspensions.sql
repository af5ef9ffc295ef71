-- What a task waits for while it waits for a person.

ALTER TABLE tasks ADD COLUMN suspension TEXT; -- JSON; null: it is not suspended

CREATE INDEX tasks_suspended ON tasks (owner, (-created_position)) WHERE suspension IS NOT NULL;
