-- The editions of the time zone database with which servers have computed times, and when they noted that last. The
-- newest row tells a server that starts with another edition that it has to compute the times of all schedules again.

CREATE TABLE zone_editions (
    edition  TEXT NOT NULL PRIMARY KEY,
    noted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
