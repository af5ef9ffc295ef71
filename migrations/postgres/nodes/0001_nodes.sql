-- Which server owns which flows when several servers share a log. In the schema of the event log, on whose `head` and
-- `fences` it relies. Times are the database's: nothing depends on the servers' clocks.

-- Live servers. One whose time has expired counts as absent.
CREATE TABLE taskledger.nodes (
    id         BYTEA       NOT NULL PRIMARY KEY, -- a fresh UUID for each start of a server
    url        TEXT        NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50); -- one row changes each second: the new version fits beside the old one

-- One row for each partition of flows (0 to 255), and one for folding the read models (256). A lease holds while its
-- node lives; a node is renewed as a whole, so no lease has a time of its own.
CREATE TABLE taskledger.leases (
    lease INTEGER NOT NULL PRIMARY KEY,
    node  BYTEA,           -- the owner; NULL: none
    token BIGINT  NOT NULL -- of the fence `partition/<lease>` when the lease was taken
) WITH (fillfactor = 50);
INSERT INTO taskledger.leases (lease, node, token)
SELECT n, NULL, 0 FROM generate_series(0, 256) AS n;

-- A secret with which servers prove to each other that they use the same database.
CREATE TABLE taskledger.cluster (
    one    BOOLEAN NOT NULL PRIMARY KEY DEFAULT TRUE CHECK (one),
    secret BYTEA   NOT NULL CHECK (octet_length(secret) = 32)
);
INSERT INTO taskledger.cluster (secret)
VALUES (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- Whether servers require credentials of callers. All live servers must agree, because one that requires none opens the
-- flows of all. A server writes its row before it is one of `nodes`, and keeps to it while it lives.
CREATE TABLE taskledger.node_authentication (
    id      BYTEA       NOT NULL PRIMARY KEY, -- of the server among `nodes`, once it takes part
    is_on   BOOLEAN     NOT NULL,
    said_at TIMESTAMPTZ NOT NULL
);

-- A server's heartbeat, with the leases that it relies on; any other lease that is stored as its own is released. It
-- takes free leases up to its share, and gets the owners of all leases. A server stops using leases that exceed its
-- share before it omits them here, since others may take them from then on. One call is one transaction, so a server
-- that stops in the middle of it holds no lock.
CREATE FUNCTION taskledger.beat(
    me     BYTEA,
    my_url TEXT,
    ttl_ms BIGINT,
    held   INTEGER[],
    tokens BIGINT[] -- of `held`, in its order
) RETURNS TABLE (node_id BYTEA, node_url TEXT, its_leases INTEGER[], its_tokens BIGINT[])
LANGUAGE plpgsql
SET lock_timeout = '1500ms'
AS $$
DECLARE
    now_at TIMESTAMPTZ;
    share  INTEGER;
    mine   INTEGER;
    free   INTEGER[];
BEGIN
    -- One beat at a time. The number is that of this purpose, no other lock has it.
    PERFORM pg_advisory_xact_lock(7310579628475201);
    now_at := clock_timestamp();

    -- A server that comes too late has lost everything, whether somebody has taken it or not.
    IF NOT EXISTS (SELECT FROM taskledger.nodes n WHERE n.id = me AND n.expires_at > now_at) THEN
        held := '{}';
        tokens := '{}';
    END IF;
    DELETE FROM taskledger.nodes n WHERE n.expires_at <= now_at AND n.id <> me;
    INSERT INTO taskledger.nodes AS n (id, url, started_at, expires_at)
    VALUES (me, my_url, now_at, now_at + ttl_ms * INTERVAL '1 millisecond')
    ON CONFLICT (id) DO UPDATE SET url = excluded.url, expires_at = excluded.expires_at;

    UPDATE taskledger.leases l SET node = NULL
    WHERE l.node IS NOT NULL
      AND (NOT EXISTS (SELECT FROM taskledger.nodes n WHERE n.id = l.node)
           OR (l.node = me AND NOT EXISTS (
               SELECT FROM unnest(held, tokens) AS h (lease, token)
               WHERE h.lease = l.lease AND h.token = l.token)));

    SELECT ceil((SELECT count(*) FROM taskledger.leases)::NUMERIC / count(*))
    INTO share FROM taskledger.nodes;
    SELECT count(*) INTO mine FROM taskledger.leases l WHERE l.node = me;
    SELECT array_agg(f.lease) INTO free FROM (
        SELECT l.lease FROM taskledger.leases l
        WHERE l.node IS NULL
        ORDER BY l.lease
        LIMIT greatest(share - mine, 0)) AS f;
    IF free IS NOT NULL THEN
        -- Appends judge fences under this lock: after it, whatever the owner before has sent is in
        -- the log, and whatever it sends is refused.
        PERFORM FROM taskledger.head FOR UPDATE;
        WITH raised AS (
            INSERT INTO taskledger.fences AS f (name, token)
            SELECT convert_to('partition/' || t.lease, 'UTF8'), 1 FROM unnest(free) AS t (lease) ORDER BY t.lease
            ON CONFLICT (name) DO UPDATE SET token = f.token + 1
            RETURNING f.name, f.token)
        UPDATE taskledger.leases l SET node = me, token = r.token
        FROM raised r
        WHERE r.name = convert_to('partition/' || l.lease, 'UTF8');
    END IF;

    RETURN QUERY
    SELECT n.id, n.url,
           coalesce(array_agg(l.lease ORDER BY l.lease) FILTER (WHERE l.lease IS NOT NULL), '{}'),
           coalesce(array_agg(l.token ORDER BY l.lease) FILTER (WHERE l.lease IS NOT NULL), '{}')
    FROM taskledger.nodes n
    LEFT JOIN taskledger.leases l ON l.node = n.id
    GROUP BY n.id, n.url
    ORDER BY n.id;
END
$$;

-- A server that stops releases all its leases at once.
CREATE FUNCTION taskledger.leave(me BYTEA) RETURNS VOID
LANGUAGE plpgsql
SET lock_timeout = '1500ms'
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7310579628475201);
    UPDATE taskledger.leases SET node = NULL WHERE node = me;
    DELETE FROM taskledger.nodes WHERE id = me;
END
$$;
