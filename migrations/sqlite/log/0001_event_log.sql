-- The event log, with the claims, fences and snapshots that the same writer stores.

-- One row per flow. Events store the stream's number instead of the flow id, so that their index grows at its end.
CREATE TABLE streams (
    number        INTEGER PRIMARY KEY,
    flow          BLOB    NOT NULL UNIQUE,
    version       INTEGER NOT NULL,
    last_position INTEGER NOT NULL
) STRICT;

-- Positions are dense: 1, 2, 3, ... in commit order. The only gaps are events that were dropped with their flow.
-- Times are microseconds since 1970, ids are the 16 bytes of a UUID.
CREATE TABLE events (
    position       INTEGER PRIMARY KEY,
    stream         INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    id             BLOB    NOT NULL,
    time           INTEGER NOT NULL,
    recorded_at    INTEGER NOT NULL,
    kind           TEXT    NOT NULL,
    schema_version INTEGER NOT NULL,
    actor          TEXT    NOT NULL,
    correlation    TEXT    NOT NULL,
    causation      BLOB,
    trace          TEXT,
    checksum       INTEGER NOT NULL, -- CRC-32 of all columns but `hash`, with the flow's id in place of `stream`
    hash           BLOB,             -- link of the hash chain (crates/log/src/chain.rs); null: imported without hashes
    data           TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_stream ON events (stream, version);
-- One entry per archived stream.
CREATE INDEX events_archived ON events (stream) WHERE kind = 'FlowArchived';

-- Kind 1: a task's id (16 bytes); kind 2: a request's key (text as bytes).
CREATE TABLE claims (
    kind       INTEGER NOT NULL,
    key        BLOB    NOT NULL,
    value      TEXT    NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_by_expiry ON claims (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE fences (
    name  TEXT    NOT NULL PRIMARY KEY,
    token INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- States from which flows are loaded; may be deleted at any time.
CREATE TABLE snapshots (
    stream   INTEGER PRIMARY KEY,
    format   INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    bytes    BLOB    NOT NULL
) STRICT;

-- Retention: the events of an archived flow are dropped, except the last one of its stream. One row.
CREATE TABLE dropped (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    horizon INTEGER NOT NULL, -- up to this position, events may be missing because they were dropped
    events  INTEGER NOT NULL  -- number of dropped events
) STRICT;
INSERT INTO dropped (one, horizon, events) VALUES (1, 0, 0);

-- For each dropped event that had a hash: what the hash chain needs to continue over it. The hash covers flow and
-- version, so that a flow that was deleted without having been archived is detected.
CREATE TABLE dropped_events (
    position    INTEGER PRIMARY KEY,
    recorded_at INTEGER NOT NULL,
    flow        BLOB    NOT NULL,
    version     INTEGER NOT NULL,
    body        BLOB    NOT NULL -- SHA-256 of the rest of the event (crates/log/src/chain.rs)
) STRICT;
CREATE UNIQUE INDEX dropped_by_flow ON dropped_events (flow, version);
