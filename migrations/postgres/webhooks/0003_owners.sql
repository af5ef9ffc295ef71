-- Whose endpoints these are. Null: nobody's, which those manage who see the flows of all users.
SET LOCAL search_path = taskledger_webhooks;

ALTER TABLE endpoints ADD COLUMN owner TEXT;
CREATE INDEX endpoints_owner ON endpoints (owner, no) WHERE owner IS NOT NULL;
ALTER TABLE removed_endpoints ADD COLUMN owner TEXT;
