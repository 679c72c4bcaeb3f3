SELECT factor_id, factor_version, emission_type, count(*) AS entries, sum(mg_co2e) / 1e9 AS tonnes
FROM emissions
WHERE factor_id IS NOT NULL
GROUP BY ALL
ORDER BY tonnes DESC, factor_id
LIMIT 50
