SELECT e.factor_id, e.factor_version AS version, e.emission_type, any_value(f.classification) AS classification,
       any_value(f.value) AS value, any_value(f.unit) AS unit, any_value(f.source) AS source,
       count(*) AS entries, sum(e.mg_co2e) / 1e9 AS tonnes
FROM emissions e JOIN factors f USING (factor_id)
GROUP BY e.factor_id, e.factor_version, e.emission_type
ORDER BY tonnes DESC, e.factor_id
LIMIT 50
