-- Statuses that runs had before the one that run_status has: a list that is read page by page shows each run as it
-- stood when its first page was read.

CREATE TABLE run_past (
    run_no          INTEGER NOT NULL,
    left_position   INTEGER NOT NULL, -- of the event with which the status ended
    owner           TEXT,             -- as in run_status
    stage           TEXT NOT NULL,
    status_at       INTEGER NOT NULL,
    status_position INTEGER NOT NULL,
    asked           INTEGER,          -- version of the event with the question that the status shows
    PRIMARY KEY (run_no, left_position)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_past_left ON run_past (left_position);
CREATE INDEX run_past_owner ON run_past (owner, left_position) WHERE owner IS NOT NULL;
