-- What the results of a calculation add up to. An entry has one result of each kind of emissions, or a single one if
-- its mass was measured (overridden).
WITH kinds AS (SELECT sum(results) AS results FROM groups WHERE status <> 'overridden' GROUP BY emission_type)
SELECT CAST(coalesce(sum(mg_co2e), 0) AS BIGINT) / 1e9 AS tonnes,
       CAST(coalesce(sum(results) FILTER (WHERE status = 'overridden'), 0)
            + (SELECT coalesce(max(results), 0) FROM kinds) AS BIGINT) AS entries,
       CAST(coalesce(sum(results) FILTER (WHERE status = 'unmatched'), 0) AS BIGINT) AS unmatched,
       CAST(coalesce(sum(results) FILTER (WHERE status = 'overridden'), 0) AS BIGINT) AS overridden
FROM groups
