-- Throughput, duration and failures of each kind of work, of what ended from `since` until before `until`, a window of `hours` hours.
--
-- completed_per_hour   throughput: work items that were completed, over the whole window
-- median_seconds       from the first claim to the end of what was completed, all waits between
-- p95_seconds          attempts among it; of the sorted durations the one at the middle, and the one that
--                      95 of 100 do not exceed (both are durations that happened, none is interpolated)
-- failure_rate         the failed among the completed and failed: what was skipped or cancelled was not tried
--
-- Superseded work is not counted: nothing was done, and nothing went wrong.
-- SQLite and Postgres differ only in how they subtract moments.
WITH ended AS (
    SELECT kind, status, started_at, {seconds} AS seconds
    FROM work
    WHERE finished_at >= :since
      AND finished_at < :until
      AND status <> 'superseded'
),
ranked AS (
    SELECT kind, seconds,
           row_number() OVER (PARTITION BY kind ORDER BY seconds) AS place,
           count(*) OVER (PARTITION BY kind) AS among
    FROM ended
    WHERE status = 'completed' AND started_at IS NOT NULL
),
durations AS (
    SELECT kind,
           max(CASE WHEN place = (among + 1) / 2 THEN seconds END) AS median_seconds,
           max(CASE WHEN place = (among * 95 + 99) / 100 THEN seconds END) AS p95_seconds
    FROM ranked
    GROUP BY kind
),
counts AS (
    SELECT kind,
           sum(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) AS completed,
           sum(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS failed,
           sum(CASE WHEN status = 'skipped' THEN 1 ELSE 0 END) AS skipped,
           sum(CASE WHEN status = 'cancelled' THEN 1 ELSE 0 END) AS cancelled
    FROM ended
    GROUP BY kind
)
SELECT counts.kind, completed, failed, skipped, cancelled,
       completed / CAST(:hours AS double precision) AS completed_per_hour,
       median_seconds, p95_seconds,
       CAST(failed AS double precision) / nullif(completed + failed, 0) AS failure_rate
FROM counts
LEFT JOIN durations ON durations.kind = counts.kind
ORDER BY counts.kind
