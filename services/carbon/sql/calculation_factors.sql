-- The factors that a calculation used, the largest first.
SELECT g.factor_id, g.factor_version AS version, g.emission_type, f.classification, f.value, f.unit, f.source,
       CAST(sum(g.results) AS BIGINT) AS entries, CAST(coalesce(sum(g.mg_co2e), 0) AS BIGINT) / 1e9 AS tonnes
FROM groups g JOIN factors f USING (factor_id)
GROUP BY ALL
ORDER BY tonnes DESC, g.factor_id, version, g.emission_type
LIMIT 50
