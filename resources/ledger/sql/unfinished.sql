-- Unfinished work by kind and status, with the moment at which the oldest of it was created.
-- Read from the index ix_work_unfinished alone, then one row per group: what is finished costs nothing.
WITH unfinished AS (
    SELECT kind, status, count(*) AS number, min(id) AS oldest
    FROM work
    WHERE finished_at IS NULL
    GROUP BY kind, status
)
SELECT unfinished.kind, unfinished.status, unfinished.number, work.created_at
FROM unfinished
JOIN work ON work.id = unfinished.oldest
ORDER BY unfinished.kind, unfinished.status
