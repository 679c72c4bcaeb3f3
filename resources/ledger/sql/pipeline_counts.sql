-- How many work items of each pipeline have each kind and status, and how many of them count: the newest of their key.
--
-- Almost every key has one row in a pipeline, and a pipeline may have millions: they are grouped. Only the
-- rows of keys that have several (`several`) are ranked, to find the older ones, which do not count. What
-- differs most stands first in GROUP BY: SQLite groups by comparing rows from there.
WITH several AS (
    SELECT m.pipeline_id, w.kind, w.key
    FROM pipeline_member m
    JOIN work w ON w.id = m.work_id
    WHERE m.pipeline_id IN :pipelines
    GROUP BY w.key, w.kind, m.pipeline_id
    HAVING count(*) > 1
),
ranked AS (
    SELECT s.pipeline_id, s.kind, w.status,
           row_number() OVER (
               PARTITION BY s.pipeline_id, s.kind, s.key
               ORDER BY CASE WHEN w.status = 'superseded' THEN 1 ELSE 0 END, w.created_at DESC, w.id DESC
           ) AS age
    FROM several s
    JOIN work w ON w.kind = s.kind AND w.key = s.key
    JOIN pipeline_member m ON m.pipeline_id = s.pipeline_id AND m.work_id = w.id
),
older AS (
    SELECT pipeline_id, kind, status, count(*) AS number
    FROM ranked
    WHERE age > 1
    GROUP BY pipeline_id, kind, status
),
grouped AS (
    SELECT m.pipeline_id, w.kind, w.status, count(*) AS number, min(w.started_at) AS started_at,
           max(w.finished_at) AS finished_at, max(w.updated_at) AS updated_at, sum(w.fence) AS fences
    FROM pipeline_member m
    JOIN work w ON w.id = m.work_id
    WHERE m.pipeline_id IN :pipelines
    GROUP BY w.status, w.kind, m.pipeline_id
)
SELECT g.pipeline_id, g.kind, g.status, g.number,
       CASE WHEN g.status = 'superseded' THEN 0 ELSE g.number - coalesce(o.number, 0) END AS counting,
       g.started_at,
       CASE WHEN g.status <> 'superseded' AND g.number > coalesce(o.number, 0) THEN g.finished_at END AS finished_at,
       g.updated_at, g.fences
FROM grouped g
LEFT JOIN older o ON o.pipeline_id = g.pipeline_id AND o.kind = g.kind AND o.status = g.status
ORDER BY g.pipeline_id, g.kind, g.status
