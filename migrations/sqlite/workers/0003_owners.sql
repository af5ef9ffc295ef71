-- Whose flows a declared method is for, and whose a worker may claim of: a user, or '' for all. Methods that were
-- declared before are for all. Who is there is seen again as soon as a worker asks.

CREATE TABLE methods_of_owners (
    name          TEXT NOT NULL,
    owner         TEXT NOT NULL,    -- the user whose flows alone it is for; '' for all
    description   TEXT,
    input_schema  TEXT,             -- JSON object
    output_schema TEXT,             -- JSON object
    defaults      TEXT,             -- JSON object: members of `params` of new tasks
    attempts_max  INTEGER,          -- attempts at once, all servers together; null: any number
    declared_by   TEXT NOT NULL,    -- principal
    declared_at   INTEGER NOT NULL,
    bytes         INTEGER NOT NULL, -- of all texts above, for the limit of all rows together
    PRIMARY KEY (name, owner)
) STRICT, WITHOUT ROWID;
INSERT INTO methods_of_owners
    SELECT name, '', description, input_schema, output_schema, defaults, attempts_max, declared_by, declared_at, bytes
    FROM methods;
DROP TABLE methods;
ALTER TABLE methods_of_owners RENAME TO methods;

-- Whose declaration an attempt counts under; '' for the shared one.
ALTER TABLE tickets ADD COLUMN owner TEXT NOT NULL DEFAULT '';

DELETE FROM workers;
ALTER TABLE workers ADD COLUMN owner TEXT NOT NULL DEFAULT '';
