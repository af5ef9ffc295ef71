-- Access tokens of OIDC issuers that are refused before they expire, by their id (`jti`) or by their subject.
CREATE TABLE denied_jwts (
    issuer    TEXT NOT NULL,
    claim     TEXT NOT NULL,    -- jti or sub
    value     TEXT NOT NULL,
    denied_at INTEGER NOT NULL, -- of a subject, tokens that were issued until then are refused
    PRIMARY KEY (issuer, claim, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX denied_jwts_at ON denied_jwts (denied_at);
