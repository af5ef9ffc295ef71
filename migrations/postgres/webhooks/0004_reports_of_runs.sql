-- Callbacks that get reports of their run as one thing, by a name of its caller. Null: notices about its tasks.
SET LOCAL search_path = taskledger_webhooks;

ALTER TABLE endpoints ADD COLUMN report_name TEXT;
-- How the server authenticates itself there; the credentials are a sealed header.
ALTER TABLE endpoints ADD COLUMN auth_scheme TEXT;
-- The media type of what is sent; null: application/json.
ALTER TABLE endpoints ADD COLUMN content_type TEXT;
-- When the last notice of the run was noted.
ALTER TABLE endpoints ADD COLUMN run_ended_at BIGINT;
CREATE INDEX endpoints_reports ON endpoints (run_id, no) WHERE report_name IS NOT NULL;
