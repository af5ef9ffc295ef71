-- The event log, with the claims, fences and snapshots that are stored with it.
-- Texts that callers choose are BYTEA in UTF-8, because TEXT cannot hold the character NUL and one such text would fail
-- the whole batch that it is written with.

-- One row, and the lock that orders all writers of all servers: the writer that holds it numbers its events and commits
-- before the next one numbers, so positions become visible in their order.
-- The page has room for many versions of the row, so that its updates touch no index.
CREATE TABLE taskledger.head (
    one         BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    position    BIGINT  NOT NULL,
    recorded_at BIGINT  NOT NULL,
    streams     BIGINT  NOT NULL,
    hash        BYTEA -- of the last event; null: it has none
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
INSERT INTO taskledger.head (position, recorded_at, streams) VALUES (0, 0, 0);

-- One row per flow. Events store the stream's number instead of the flow id, so that their index grows at its end.
CREATE TABLE taskledger.streams (
    number        BIGINT PRIMARY KEY,
    flow          UUID   NOT NULL UNIQUE,
    version       BIGINT NOT NULL,
    last_position BIGINT NOT NULL
) WITH (fillfactor = 70);

-- Positions are dense: 1, 2, 3, ... in commit order. The only gaps are events that were dropped with their flow. Times
-- are microseconds since 1970. `checksum` is the CRC-32 of all other columns but `hash`, with the flow's id in place of
-- `stream` and zeros in place of `position` and `recorded_at`; only the database knows these two, and it mixes them in
-- by XOR.
CREATE TABLE taskledger.events (
    position       BIGINT  PRIMARY KEY,
    stream         BIGINT  NOT NULL,
    version        BIGINT  NOT NULL,
    id             UUID    NOT NULL,
    time           BIGINT  NOT NULL,
    recorded_at    BIGINT  NOT NULL,
    kind           TEXT    NOT NULL,
    schema_version INTEGER NOT NULL,
    actor          BYTEA   NOT NULL,
    correlation    BYTEA   NOT NULL,
    causation      UUID,
    trace          BYTEA,
    checksum       BIGINT  NOT NULL,
    hash           BYTEA, -- link of the hash chain (crates/log/src/chain.rs); null: imported without hashes
    data           TEXT    NOT NULL
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);
-- Also a safeguard: `append_chained` writes no second event with the same version, and if it did, this would raise.
CREATE UNIQUE INDEX events_by_stream ON taskledger.events (stream, version);
-- One entry per archived stream.
CREATE INDEX events_archived ON taskledger.events (stream) WHERE kind = 'FlowArchived';

-- Kind 1: a task's id (16 bytes); kind 2: a request's key.
CREATE TABLE taskledger.claims (
    kind       SMALLINT NOT NULL,
    key        BYTEA    NOT NULL,
    value      BYTEA    NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (kind, key)
);
CREATE INDEX claims_by_expiry ON taskledger.claims (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE taskledger.fences (
    name  BYTEA  PRIMARY KEY,
    token BIGINT NOT NULL
);

-- Processes that append. An append carries its writer's epoch; once that has been raised, an append that was sent
-- before can no longer take effect. Epochs come from one sequence and never return, so a row may be deleted at any
-- time: its process then requests a new epoch.
CREATE TABLE taskledger.writers (
    node      UUID        PRIMARY KEY,
    epoch     BIGINT      NOT NULL,
    raised_at TIMESTAMPTZ NOT NULL
);
CREATE SEQUENCE taskledger.epochs AS BIGINT;

-- States from which flows are loaded; may be deleted at any time.
CREATE TABLE taskledger.snapshots (
    stream   BIGINT  PRIMARY KEY,
    format   BIGINT  NOT NULL,
    version  BIGINT  NOT NULL,
    checksum BIGINT  NOT NULL,
    bytes    BYTEA   NOT NULL
);

-- Retention: the events of an archived flow are dropped, except the last one of its stream. One row.
CREATE TABLE taskledger.dropped (
    one     BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    horizon BIGINT  NOT NULL, -- up to this position, events may be missing because they were dropped
    events  BIGINT  NOT NULL  -- number of dropped events
) WITH (fillfactor = 10);
INSERT INTO taskledger.dropped (horizon, events) VALUES (0, 0);

-- For each dropped event that had a hash: what the hash chain needs to continue over it. The hash covers flow and
-- version, so that a flow that was deleted without having been archived is detected.
CREATE TABLE taskledger.dropped_events (
    position    BIGINT PRIMARY KEY,
    recorded_at BIGINT NOT NULL,
    flow        UUID   NOT NULL,
    version     BIGINT NOT NULL,
    body        BYTEA  NOT NULL -- `event_body` of the event
);
CREATE UNIQUE INDEX dropped_by_flow ON taskledger.dropped_events (flow, version);

-- The body of an event: the SHA-256 of what an append supplies, without flow and version. As in
-- crates/log/src/chain.rs.
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

-- The content of an event, which its hash covers: the SHA-256 of flow, version and body. For auditors
-- (docs/guides/audit.md).
CREATE FUNCTION taskledger.event_content(
    flow uuid, version bigint, id uuid, "time" bigint, kind text, schema_version integer,
    actor bytea, correlation bytea, causation uuid, trace bytea, data text
) RETURNS bytea
LANGUAGE sql STABLE AS $$
    SELECT sha256(uuid_send(flow) || int8send(version)
        || taskledger.event_body(id, "time", kind, schema_version, actor, correlation, causation, trace, data))
$$;

-- The log is append-only, with one exception: events of an archived stream before its last one may be deleted.
CREATE FUNCTION taskledger.refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the event log is append-only: % of taskledger.events is refused', TG_OP
        USING ERRCODE = 'TL002';
END
$$;
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

-- Stores what the hash chain needs of deleted events.
CREATE FUNCTION taskledger.keep_remains() RETURNS trigger
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
CREATE TRIGGER remains AFTER DELETE ON taskledger.events
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION taskledger.keep_remains();

-- Checks a batch of appends, writes those that may be written, and computes the hashes of their events from the
-- contents that the caller supplies.
--
-- No two appends of a batch are of one stream or claim the same key; the caller ensures that, so all can be checked
-- against the state before the batch. Claims come in the order of their appends; `claim_appends` and `event_appends`
-- name the append of each (from 1), `event_offsets` the place of an event within its append (from 1).
--
-- Verdicts: 0 appended (`numbers`: the position before its first event), 1 conflict (`numbers`: the stream's version),
-- 2 a claim is taken (`taken`: which one, `held`: its value), 3 fenced.
--
-- Plans are made once, for any arguments: planning each batch anew costs more than the work. They must therefore be
-- right for a large log, though they were made when it was empty. `LIMIT 1` keeps each look-up a probe of an index,
-- tables are not scanned, and arrays are joined by hashing (the look-ups are nested loops all the same, since there is
-- no other way to run them).
CREATE FUNCTION taskledger.append_chained(
    writer uuid, writer_epoch bigint, clock bigint, sweep integer,
    flows uuid[], expected bigint[], counts integer[], fence_names bytea[], fence_tokens bigint[],
    claim_appends integer[], claim_kinds smallint[], claim_keys bytea[], claim_values bytea[],
    claim_expiries bigint[],
    event_appends integer[], event_offsets integer[], ids uuid[], times bigint[], kinds text[],
    schema_versions integer[], actors bytea[], correlations bytea[], causations uuid[],
    traces bytea[], checksums bigint[], bodies text[], contents bytea[],
    OUT last_position bigint, OUT recorded bigint, OUT verdicts smallint[], OUT numbers bigint[],
    OUT taken integer[], OUT held bytea[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_nestloop = off SET jit = off
AS $$
DECLARE
    last_stream    bigint;
    stream_numbers bigint[];
    written        bigint;
    begun          bigint;
    link           bytea;
    -- From 1 on, whichever event is the first to be written.
    hashes         bytea[] := array_fill(NULL::bytea, ARRAY[cardinality(event_appends)]);
BEGIN
    SELECT h.position, h.recorded_at, h.streams, coalesce(h.hash, decode(repeat('00', 32), 'hex'))
    INTO last_position, recorded, last_stream, link
    FROM taskledger.head AS h FOR UPDATE;

    -- Statements from here on see all that was committed before the lock was given.
    PERFORM FROM taskledger.writers AS w WHERE w.node = writer AND w.epoch = writer_epoch;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'epoch % of writer % is not the current one', writer_epoch, writer
            USING ERRCODE = 'TL001';
    END IF;
    recorded := greatest(recorded, clock);

    WITH asked AS (
        SELECT a.n::integer, a.expected, a.count, s.number, coalesce(s.version, 0) AS actual, f.token
        FROM unnest(flows, expected, counts, fence_names, fence_tokens)
            WITH ORDINALITY AS a (flow, expected, count, fence, token, n)
        LEFT JOIN LATERAL (
            SELECT t.number, t.version FROM taskledger.streams AS t WHERE t.flow = a.flow LIMIT 1
        ) AS s ON true
        LEFT JOIN LATERAL (
            SELECT t.token FROM taskledger.fences AS t
            WHERE t.name = a.fence AND t.token > a.token LIMIT 1
        ) AS f ON true
    ), refused AS (
        SELECT DISTINCT ON (c.append) c.append, c.n::integer, h.value
        FROM unnest(claim_appends, claim_kinds, claim_keys)
            WITH ORDINALITY AS c (append, kind, key, n)
        CROSS JOIN LATERAL (
            SELECT t.value FROM taskledger.claims AS t
            WHERE t.kind = c.kind AND t.key = c.key
              AND (t.expires_at IS NULL OR t.expires_at >= recorded)
            LIMIT 1
        ) AS h
        ORDER BY c.append, c.n
    ), judged AS (
        SELECT a.n, a.count, a.number, a.actual, r.n AS claim, r.value,
            CASE
                WHEN a.token IS NOT NULL THEN 3
                WHEN a.actual <> a.expected THEN 1
                WHEN r.n IS NOT NULL THEN 2
                ELSE 0
            END AS verdict
        FROM asked AS a LEFT JOIN refused AS r ON r.append = a.n
    ), numbered AS (
        SELECT j.*,
            last_position - j.count + sum(j.count) FILTER (WHERE j.verdict = 0) OVER w AS base,
            last_stream + count(*) FILTER (WHERE j.verdict = 0 AND j.number IS NULL) OVER w AS fresh
        FROM judged AS j
        WINDOW w AS (ORDER BY j.n)
    )
    SELECT array_agg(m.verdict::smallint ORDER BY m.n),
        array_agg(CASE m.verdict WHEN 0 THEN m.base ELSE m.actual END ORDER BY m.n),
        array_agg(coalesce(m.number, m.fresh) ORDER BY m.n),
        array_agg(CASE m.verdict WHEN 2 THEN m.claim END ORDER BY m.n),
        array_agg(CASE m.verdict WHEN 2 THEN m.value END ORDER BY m.n),
        coalesce(sum(m.count) FILTER (WHERE m.verdict = 0), 0),
        count(*) FILTER (WHERE m.verdict = 0 AND m.number IS NULL)
    INTO verdicts, numbers, stream_numbers, taken, held, written, begun
    FROM numbered AS m;

    IF sweep > 0 THEN
        DELETE FROM taskledger.claims AS c
        WHERE c.ctid = ANY (ARRAY(
            SELECT t.ctid FROM taskledger.claims AS t
            WHERE t.expires_at < recorded ORDER BY t.expires_at LIMIT sweep
        ));
    END IF;
    IF written = 0 THEN
        RETURN;
    END IF;

    -- Events come in the order of their positions, and each needs the hash before it.
    FOR i IN 1 .. cardinality(event_appends) LOOP
        IF verdicts[event_appends[i]] = 0 THEN
            link := sha256(link || int8send(numbers[event_appends[i]] + event_offsets[i])
                || int8send(recorded) || contents[i]);
            hashes[i] := link;
        END IF;
    END LOOP;

    INSERT INTO taskledger.events AS n (position, stream, version, id, time, recorded_at, kind,
        schema_version, actor, correlation, causation, trace, checksum, data, hash)
    SELECT p.position, stream_numbers[e.append], expected[e.append] + e.place, e.id, e.time,
        recorded, e.kind, e.schema_version, e.actor, e.correlation, e.causation, e.trace,
        e.checksum # ((p.position # (p.position >> 32) # recorded # (recorded >> 32)) & 4294967295),
        e.body, e.hash
    FROM unnest(event_appends, event_offsets, ids, times, kinds, schema_versions, actors,
            correlations, causations, traces, checksums, bodies, hashes)
        AS e (append, place, id, time, kind, schema_version, actor, correlation, causation, trace,
            checksum, body, hash)
    CROSS JOIN LATERAL (SELECT numbers[e.append] + e.place AS position) AS p
    WHERE verdicts[e.append] = 0;

    INSERT INTO taskledger.streams AS s (number, flow, version, last_position)
    SELECT stream_numbers[a.n], a.flow, a.expected + a.count, numbers[a.n] + a.count
    FROM unnest(flows, expected, counts) WITH ORDINALITY AS a (flow, expected, count, n)
    WHERE verdicts[a.n] = 0
    ON CONFLICT (flow) DO UPDATE
        SET version = excluded.version, last_position = excluded.last_position;

    -- What is replaced was judged to be expired.
    INSERT INTO taskledger.claims AS h (kind, key, value, expires_at)
    SELECT c.kind, c.key, c.value, c.expires_at
    FROM unnest(claim_appends, claim_kinds, claim_keys, claim_values, claim_expiries)
        AS c (append, kind, key, value, expires_at)
    WHERE verdicts[c.append] = 0
    ON CONFLICT (kind, key) DO UPDATE
        SET value = excluded.value, expires_at = excluded.expires_at;

    last_position := last_position + written;
    UPDATE taskledger.head AS h
    SET position = last_position, recorded_at = recorded, streams = last_stream + begun, hash = link;
    PERFORM pg_notify('taskledger', last_position::text);
END
$$;

-- A new epoch for a writer. Waits for the append that holds the head, so afterwards every append with an older epoch is
-- either committed and visible, or refused.
CREATE FUNCTION taskledger.raise_epoch(writer uuid) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    raised bigint;
BEGIN
    PERFORM FROM taskledger.head FOR UPDATE;
    DELETE FROM taskledger.writers AS w WHERE w.raised_at < now() - INTERVAL '30 days';
    INSERT INTO taskledger.writers AS w (node, epoch, raised_at)
    VALUES (writer, nextval('taskledger.epochs'), now())
    ON CONFLICT (node) DO UPDATE SET epoch = excluded.epoch, raised_at = excluded.raised_at
    RETURNING w.epoch INTO raised;
    RETURN raised;
END
$$;

-- A new token for a fence. Waits for the append that holds the head: the owner of the new token sees every event of
-- earlier owners.
CREATE FUNCTION taskledger.raise_fence(fence bytea) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    raised bigint;
BEGIN
    PERFORM FROM taskledger.head FOR UPDATE;
    INSERT INTO taskledger.fences AS f (name, token) VALUES (fence, 1)
    ON CONFLICT (name) DO UPDATE SET token = f.token + 1
    RETURNING f.token INTO raised;
    RETURN raised;
END
$$;
