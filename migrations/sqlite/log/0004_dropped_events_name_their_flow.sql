-- Each dropped event names its flow and its version there, which its hash covers: a flow that is gone without having been
-- archived is noticed. `body` is the SHA-256 of the rest of the event; see crates/log/src/chain.rs.
DROP TABLE dropped_events;
CREATE TABLE dropped_events (
    position    INTEGER PRIMARY KEY,
    recorded_at INTEGER NOT NULL,
    flow        BLOB    NOT NULL,
    version     INTEGER NOT NULL,
    body        BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX dropped_by_flow ON dropped_events (flow, version);
