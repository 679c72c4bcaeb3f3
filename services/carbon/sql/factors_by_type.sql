SELECT a.data_entry_type, count(*) AS factors, count(*) FILTER (WHERE b.factor_id IS NULL) AS new,
       count(*) FILTER (WHERE a.version <> b.version) AS changed, count(*) FILTER (WHERE a.stale) AS stale,
       count(*) FILTER (WHERE b.factor_id IS NULL OR a.version <> b.version OR a.stale <> b.stale) AS touched
FROM after a LEFT JOIN before b USING (factor_id)
GROUP BY 1
ORDER BY 1
