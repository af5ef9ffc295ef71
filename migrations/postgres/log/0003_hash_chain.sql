-- Each event has a hash that rests on the one before it; see crates/log/src/chain.rs.

-- Null in events from before the chain.
ALTER TABLE taskledger.events ADD COLUMN hash BYTEA;
-- That of the last event.
ALTER TABLE taskledger.head ADD COLUMN hash BYTEA;

-- What stays of each event that had a hash and was dropped, so that the chain can be followed over it.
CREATE TABLE taskledger.dropped_events (
    position    BIGINT PRIMARY KEY,
    recorded_at BIGINT NOT NULL,
    content     BYTEA  NOT NULL
);

-- The content of an event: all that an append brings of it.
CREATE FUNCTION taskledger.event_content(
    flow uuid, version bigint, id uuid, "time" bigint, kind text, schema_version integer,
    actor bytea, correlation bytea, causation uuid, trace bytea, data text
) RETURNS bytea
LANGUAGE sql STABLE AS $$
    SELECT sha256(uuid_send(flow) || int8send(version) || uuid_send(id) || int8send("time")
        || int4send(schema_version)
        || CASE WHEN causation IS NULL THEN '\x00'::bytea ELSE '\x01'::bytea END
        || uuid_send(coalesce(causation, '00000000-0000-0000-0000-000000000000'::uuid))
        || CASE WHEN trace IS NULL THEN '\x00'::bytea ELSE '\x01'::bytea END
        || int8send(octet_length(kind)) || convert_to(kind, 'UTF8')
        || int8send(octet_length(actor)) || actor
        || int8send(octet_length(correlation)) || correlation
        || int8send(octet_length(coalesce(trace, ''::bytea))) || coalesce(trace, ''::bytea)
        || int8send(octet_length(data)) || convert_to(data, 'UTF8'))
$$;

-- Whoever drops events leaves what the chain needs of them.
CREATE FUNCTION taskledger.keep_remains() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO taskledger.dropped_events (position, recorded_at, content)
    SELECT g.position, g.recorded_at, taskledger.event_content(s.flow, g.version, g.id, g.time, g.kind,
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

-- As `taskledger.append` was, and hashes the events; the caller brings their contents.
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

-- For servers of the version before, which do not bring contents.
CREATE OR REPLACE FUNCTION taskledger.append(
    writer uuid, writer_epoch bigint, clock bigint, sweep integer,
    flows uuid[], expected bigint[], counts integer[], fence_names bytea[], fence_tokens bigint[],
    claim_appends integer[], claim_kinds smallint[], claim_keys bytea[], claim_values bytea[],
    claim_expiries bigint[],
    event_appends integer[], event_offsets integer[], ids uuid[], times bigint[], kinds text[],
    schema_versions integer[], actors bytea[], correlations bytea[], causations uuid[],
    traces bytea[], checksums bigint[], bodies text[],
    OUT last_position bigint, OUT recorded bigint, OUT verdicts smallint[], OUT numbers bigint[],
    OUT taken integer[], OUT held bytea[]
)
LANGUAGE plpgsql AS $$
DECLARE
    contents bytea[];
BEGIN
    SELECT array_agg(taskledger.event_content(flows[e.append], expected[e.append] + e.place, e.id,
        e.time, e.kind, e.schema_version, e.actor, e.correlation, e.causation, e.trace, e.body)
        ORDER BY e.n)
    INTO contents
    FROM unnest(event_appends, event_offsets, ids, times, kinds, schema_versions, actors,
            correlations, causations, traces, bodies) WITH ORDINALITY
        AS e (append, place, id, time, kind, schema_version, actor, correlation, causation, trace,
            body, n);
    SELECT c.last_position, c.recorded, c.verdicts, c.numbers, c.taken, c.held
    INTO last_position, recorded, verdicts, numbers, taken, held
    FROM taskledger.append_chained(writer, writer_epoch, clock, sweep, flows, expected, counts,
        fence_names, fence_tokens, claim_appends, claim_kinds, claim_keys, claim_values,
        claim_expiries, event_appends, event_offsets, ids, times, kinds, schema_versions, actors,
        correlations, causations, traces, checksums, bodies, contents) AS c;
END
$$;
