-- Parts of outputs that tasks of runs have made. The parts are in the log.
CREATE TABLE run_output (
    run_no  BIGINT NOT NULL,
    ordinal BIGINT NOT NULL, -- of the task
    number  BIGINT NOT NULL, -- of the part in its attempt, from 1
    attempt BIGINT NOT NULL, -- the latest one with so many parts
    version BIGINT NOT NULL, -- of the event in its flow
    bytes   BIGINT NOT NULL,
    PRIMARY KEY (run_no, ordinal, number)
);
