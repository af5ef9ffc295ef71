-- On SQLite, a task whose user is its owner has one entry in an index for lists of both. PostgreSQL keeps an entry for
-- each: its planner chooses by cost, and would read and sort where two indexes have to be merged.
SELECT 1;
