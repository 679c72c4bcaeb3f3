-- An entry has one result of each kind of emissions that is counted, or a single one if its mass was measured.
WITH kinds AS (
    SELECT emission_type, sum(results) AS results FROM groups WHERE status <> 'overridden' GROUP BY ALL
)
SELECT coalesce(sum(mg), 0) / 1e9 AS tonnes,
       CAST(coalesce(sum(results) FILTER (WHERE status = 'overridden'), 0)
            + coalesce((SELECT max(results) FROM kinds), 0) AS BIGINT) AS entries,
       CAST(coalesce(sum(results) FILTER (WHERE status = 'unmatched'), 0) AS BIGINT) AS unmatched,
       CAST(coalesce(sum(results) FILTER (WHERE status = 'overridden'), 0) AS BIGINT) AS overridden
FROM groups
