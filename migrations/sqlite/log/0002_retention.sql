-- Flows that were archived leave the log, but for the last event of their stream.

-- One row. Up to `horizon` a position may be missing because its event was dropped; `events` counts
-- those that were.
CREATE TABLE dropped (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    horizon INTEGER NOT NULL,
    events  INTEGER NOT NULL
) STRICT;
INSERT INTO dropped (one, horizon, events) VALUES (1, 0, 0);

-- Archived streams; no other event has an entry.
CREATE INDEX events_archived ON events (stream) WHERE kind = 'FlowArchived';
