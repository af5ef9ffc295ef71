-- Statuses that runs had before the one that run_status has: a list that is read page by page shows each run as it
-- stood when its first page was read.

CREATE TABLE run_past (
    run_no          BIGINT NOT NULL,
    left_position   BIGINT NOT NULL,  -- of the event with which the status ended
    owner           TEXT COLLATE "C", -- as in run_status
    stage           TEXT COLLATE "C" NOT NULL,
    status_at       BIGINT NOT NULL,
    status_position BIGINT NOT NULL,
    asked           BIGINT,           -- version of the event with the question that the status shows
    PRIMARY KEY (run_no, left_position)
);

CREATE INDEX run_past_left ON run_past (left_position);
CREATE INDEX run_past_owner ON run_past (owner, left_position) WHERE owner IS NOT NULL;
