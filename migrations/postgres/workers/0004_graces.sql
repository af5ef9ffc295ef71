-- How often a lease was extended because its flow came to another process, since its worker last renewed it. Bounds
-- for how long a server that restarts again and again keeps an attempt whose worker is gone.

SET LOCAL search_path = taskledger_workers;

ALTER TABLE renewals ADD COLUMN graces BIGINT NOT NULL DEFAULT 0;
