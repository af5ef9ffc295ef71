-- The editions of the time zone database with which servers have computed times, and when they noted that last. The
-- newest row tells a server that starts with another edition that it has to compute the times of all schedules again.

SET LOCAL search_path = taskledger_schedules;

CREATE TABLE zone_editions (
    edition  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    noted_at BIGINT NOT NULL
);
