-- The id of the event at the checkpoint: a log that has another event there is another log. Null at position 0.
ALTER TABLE checkpoints ADD COLUMN event BYTEA;
