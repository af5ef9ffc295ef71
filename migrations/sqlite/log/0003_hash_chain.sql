-- Each event has a hash that rests on the one before it; see crates/log/src/chain.rs.

-- Null in events from before the chain.
ALTER TABLE events ADD COLUMN hash BLOB;

-- What stays of each event that had a hash and was dropped, so that the chain can be followed over it.
CREATE TABLE dropped_events (
    position    INTEGER PRIMARY KEY,
    recorded_at INTEGER NOT NULL,
    content     BLOB    NOT NULL
) STRICT;
