-- Flows that are folded no further, because one of their events cannot be read or folded.
CREATE TABLE damaged_flows (
    flow        BYTEA NOT NULL PRIMARY KEY,
    position    BIGINT NOT NULL, -- of the first event that is not folded
    is_readable BIGINT NOT NULL, -- 1: it contradicts those before it; 0: it cannot be read
    reason      TEXT NOT NULL
);
