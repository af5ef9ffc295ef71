-- How runs stand for whoever began them, apart from their counts, which follow every attempt.

CREATE TABLE run_status (
    run_no          BIGINT PRIMARY KEY, -- position of the event that started the run
    flow_no         BIGINT NOT NULL,
    version         BIGINT NOT NULL,    -- of that event in its flow
    has_origin      BIGINT NOT NULL,    -- 1: it was begun by a message
    owner           TEXT COLLATE "C",   -- null: nobody
    context         TEXT COLLATE "C" NOT NULL,
    stage           TEXT COLLATE "C" NOT NULL,
    status_at       BIGINT NOT NULL,
    status_position BIGINT NOT NULL,
    waiting         BIGINT NOT NULL     -- questions that wait for an answer
);

CREATE INDEX run_status_flow ON run_status (flow_no);
CREATE INDEX run_status_at ON run_status (status_at, run_no);
CREATE INDEX run_status_stage ON run_status (stage, status_at, run_no);
CREATE INDEX run_status_context ON run_status (context, status_at, run_no);
CREATE INDEX run_status_owner ON run_status (owner, status_at, run_no) WHERE owner IS NOT NULL;
CREATE INDEX run_status_owner_stage ON run_status (owner, stage, status_at, run_no)
    WHERE owner IS NOT NULL;

-- What was said in runs: messages of whoever began them, and questions of their tasks. The texts are in the log.
CREATE TABLE run_said (
    run_no  BIGINT NOT NULL,
    version BIGINT NOT NULL, -- of the event in its flow
    kind    TEXT COLLATE "C" NOT NULL, -- message, input, auth
    ordinal BIGINT NOT NULL, -- of the task that asks; -1 for a message
    waits   BIGINT NOT NULL, -- 1: a question without an answer
    PRIMARY KEY (run_no, version)
);

CREATE INDEX run_said_waits ON run_said (run_no, version) WHERE waits = 1;
