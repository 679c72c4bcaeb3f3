SELECT coalesce(sum(mg_co2e), 0) / 1e9 AS tonnes, count(DISTINCT entry_key) AS entries,
       count(*) FILTER (WHERE status = 'unmatched') AS unmatched,
       count(*) FILTER (WHERE status = 'overridden') AS overridden
FROM emissions
