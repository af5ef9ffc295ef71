-- Whose flows a declared method is for, and whose a worker may claim of: a user, or '' for all. Methods that were
-- declared before are for all. Who is there is seen again as soon as a worker asks.

SET LOCAL search_path = taskledger_workers;

ALTER TABLE methods ADD COLUMN owner TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE methods DROP CONSTRAINT methods_pkey;
ALTER TABLE methods ADD PRIMARY KEY (name, owner);

-- Whose declaration an attempt counts under; '' for the shared one.
ALTER TABLE tickets ADD COLUMN owner TEXT COLLATE "C" NOT NULL DEFAULT '';

DELETE FROM workers;
ALTER TABLE workers ADD COLUMN owner TEXT COLLATE "C" NOT NULL DEFAULT '';
