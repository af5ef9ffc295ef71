-- What is known of endpoints that are gone, of what an attempt was made for, and of what has changed since
-- an outbox looked.

-- Deliveries outlive their endpoint, and say whose they were. Kept as long as they are.
CREATE TABLE removed_endpoints (
    no         INTEGER NOT NULL PRIMARY KEY,
    id         BLOB NOT NULL,
    removed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX removed_endpoints_id ON removed_endpoints (id);
CREATE INDEX removed_endpoints_at ON removed_endpoints (removed_at);

-- The generation in which an endpoint was made or changed, and the last one in which a lasting one was removed.
ALTER TABLE endpoints ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
CREATE INDEX endpoints_generation ON endpoints (generation) WHERE is_callback = 0;
ALTER TABLE state ADD COLUMN removal INTEGER NOT NULL DEFAULT 0;

-- 1: it names events about other endpoints.
ALTER TABLE endpoints ADD COLUMN about_endpoints INTEGER NOT NULL DEFAULT 0;
UPDATE endpoints SET about_endpoints = 1 WHERE is_callback = 0 AND events LIKE '%"webhook.endpoint.%';
CREATE INDEX endpoints_about ON endpoints (no) WHERE about_endpoints = 1;

-- Two endpoints must not share a secret: a keyed digest of it, made with the key that seals it. Null: not known.
ALTER TABLE endpoint_keys ADD COLUMN digest BLOB;
CREATE INDEX endpoint_keys_digest ON endpoint_keys (digest) WHERE digest IS NOT NULL;

-- What an attempt was made for: 0 the schedule, 1 an order by hand, 2 a schedule that was begun anew, 3 a test.
ALTER TABLE attempts RENAME COLUMN by_hand TO cause;
-- 1: its schedule was begun anew.
ALTER TABLE deliveries ADD COLUMN recovered INTEGER NOT NULL DEFAULT 0;
