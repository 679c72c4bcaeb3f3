SELECT g.factor_id, g.factor_version AS version, g.emission_type, any_value(f.classification) AS classification,
       any_value(f.value) AS value, any_value(f.unit) AS unit, any_value(f.source) AS source,
       CAST(sum(g.results) AS BIGINT) AS entries, sum(g.mg) / 1e9 AS tonnes
FROM groups g JOIN factors f USING (factor_id)
GROUP BY g.factor_id, g.factor_version, g.emission_type
ORDER BY tonnes DESC, g.factor_id
LIMIT 50
