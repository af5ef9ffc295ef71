-- Parts of outputs that tasks of runs have made. The parts are in the log.
CREATE TABLE run_output (
    run_no  INTEGER NOT NULL,
    ordinal INTEGER NOT NULL, -- of the task
    number  INTEGER NOT NULL, -- of the part in its attempt, from 1
    attempt INTEGER NOT NULL, -- the latest one with so many parts
    version INTEGER NOT NULL, -- of the event in its flow
    bytes   INTEGER NOT NULL,
    PRIMARY KEY (run_no, ordinal, number)
) STRICT, WITHOUT ROWID;
