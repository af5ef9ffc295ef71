-- Access tokens of OIDC issuers that are refused before they expire, by their id (`jti`) or by their subject.
SET LOCAL search_path = taskledger_auth;

CREATE TABLE denied_jwts (
    issuer    TEXT COLLATE "C" NOT NULL,
    claim     TEXT COLLATE "C" NOT NULL, -- jti or sub
    value     TEXT COLLATE "C" NOT NULL,
    denied_at BIGINT NOT NULL,           -- of a subject, tokens that were issued until then are refused
    PRIMARY KEY (issuer, claim, value)
);
CREATE INDEX denied_jwts_at ON denied_jwts (denied_at);
