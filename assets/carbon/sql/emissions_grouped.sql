-- Millions of results to some dozen rows, once. Sums of whole numbers stay exact in a DECIMAL.
SELECT emission_type, status, factor_id, factor_version, count(*) AS results,
       CAST(sum(mg_co2e) AS DECIMAL(38, 0)) AS mg
FROM emissions
GROUP BY ALL
