-- Whether servers ask callers for credentials. All that live must agree: one that does not ask opens the flows of all.
-- A server says so before it is one of `nodes`, and stands by it while it lives.
CREATE TABLE taskledger.node_authentication (
    id      BYTEA       NOT NULL PRIMARY KEY, -- that of the server among `nodes`, once it takes part
    is_on   BOOLEAN     NOT NULL,
    said_at TIMESTAMPTZ NOT NULL
);
