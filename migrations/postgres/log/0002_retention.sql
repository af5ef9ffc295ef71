-- Flows that were archived leave the log, but for the last event of their stream.

-- One row. Up to `horizon` a position may be missing because its event was dropped; `events` counts
-- those that were.
CREATE TABLE taskledger.dropped (
    one     BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    horizon BIGINT  NOT NULL,
    events  BIGINT  NOT NULL
) WITH (fillfactor = 10);
INSERT INTO taskledger.dropped (horizon, events) VALUES (0, 0);

-- Archived streams; no other event has an entry.
CREATE INDEX events_archived ON taskledger.events (stream) WHERE kind = 'FlowArchived';

-- Still append-only, with one exception: what stands before the end of an archived stream.
DROP TRIGGER append_only ON taskledger.events;
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON taskledger.events
    FOR EACH STATEMENT EXECUTE FUNCTION taskledger.refuse_change();

CREATE FUNCTION taskledger.refuse_delete() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    kept bigint;
BEGIN
    SELECT g.position INTO kept
    FROM gone AS g
    WHERE NOT EXISTS (
        SELECT FROM taskledger.streams AS s
        JOIN taskledger.events AS e ON e.stream = s.number AND e.version = s.version
        WHERE s.number = g.stream AND g.version < s.version AND e.kind = 'FlowArchived')
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the event log is append-only: DELETE of taskledger.events is refused, position % '
            'is not of an archived flow', kept
            USING ERRCODE = 'TL002';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER archived_only AFTER DELETE ON taskledger.events
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION taskledger.refuse_delete();
