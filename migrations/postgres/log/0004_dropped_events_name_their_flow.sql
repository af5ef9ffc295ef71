-- Each dropped event names its flow and its version there, which its hash covers: a flow that is gone without having been
-- archived is noticed. `body` is the SHA-256 of the rest of the event; see crates/log/src/chain.rs.
DROP TABLE taskledger.dropped_events;
CREATE TABLE taskledger.dropped_events (
    position    BIGINT PRIMARY KEY,
    recorded_at BIGINT NOT NULL,
    flow        UUID   NOT NULL,
    version     BIGINT NOT NULL,
    body        BYTEA  NOT NULL
);
CREATE UNIQUE INDEX dropped_by_flow ON taskledger.dropped_events (flow, version);

-- All that an append brings of an event but its flow and version.
CREATE FUNCTION taskledger.event_body(
    id uuid, "time" bigint, kind text, schema_version integer, actor bytea, correlation bytea, causation uuid,
    trace bytea, data text
) RETURNS bytea
LANGUAGE sql STABLE AS $$
    SELECT sha256(uuid_send(id) || int8send("time") || int4send(schema_version)
        || CASE WHEN causation IS NULL THEN '\x00'::bytea ELSE '\x01'::bytea END
        || uuid_send(coalesce(causation, '00000000-0000-0000-0000-000000000000'::uuid))
        || CASE WHEN trace IS NULL THEN '\x00'::bytea ELSE '\x01'::bytea END
        || int8send(octet_length(kind)) || convert_to(kind, 'UTF8')
        || int8send(octet_length(actor)) || actor
        || int8send(octet_length(correlation)) || correlation
        || int8send(octet_length(coalesce(trace, ''::bytea))) || coalesce(trace, ''::bytea)
        || int8send(octet_length(data)) || convert_to(data, 'UTF8'))
$$;

CREATE OR REPLACE FUNCTION taskledger.keep_remains() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO taskledger.dropped_events (position, recorded_at, flow, version, body)
    SELECT g.position, g.recorded_at, s.flow, g.version, taskledger.event_body(g.id, g.time, g.kind,
        g.schema_version, g.actor, g.correlation, g.causation, g.trace, g.data)
    FROM gone AS g
    JOIN taskledger.streams AS s ON s.number = g.stream
    WHERE g.hash IS NOT NULL;
    RETURN NULL;
END
$$;

-- The content of an event, for `taskledger.append`.
CREATE OR REPLACE FUNCTION taskledger.event_content(
    flow uuid, version bigint, id uuid, "time" bigint, kind text, schema_version integer,
    actor bytea, correlation bytea, causation uuid, trace bytea, data text
) RETURNS bytea
LANGUAGE sql STABLE AS $$
    SELECT sha256(uuid_send(flow) || int8send(version)
        || taskledger.event_body(id, "time", kind, schema_version, actor, correlation, causation, trace, data))
$$;
