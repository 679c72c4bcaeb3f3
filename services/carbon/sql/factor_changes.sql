SELECT a.year, a.data_entry_type, a.emission_type, a.classification,
       b.value AS before, b.unit AS before_unit, a.value AS after, a.unit AS after_unit,
       CASE WHEN b.factor_id IS NULL THEN 'new' WHEN a.version <> b.version THEN 'changed' ELSE 'stale' END AS change
FROM after a LEFT JOIN before b USING (factor_id)
WHERE b.factor_id IS NULL OR a.version <> b.version OR (a.stale AND NOT b.stale)
ORDER BY ALL
