-- From when on a task may start, as somebody said.

ALTER TABLE tasks ADD COLUMN start_at INTEGER; -- microseconds; null: at any time
