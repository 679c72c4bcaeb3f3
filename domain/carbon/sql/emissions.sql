-- One row per entry and kind of emissions. A measured mass takes the place of everything calculated.
-- Masses are bounded here, so that what is absurd becomes an error that names its entry: also NaN and infinity.
SELECT e.year, $type AS data_entry_type, e.entry_key, c.emission_type, e.unit_id,
       CASE WHEN c.factor_id IS NULL THEN 'unmatched' ELSE 'matched' END AS status,
       CASE WHEN c.factor_id IS NOT NULL
            THEN CAST(round(greatest(least(e.quantity * r.mg_per_unit, 9.2e18), -9.2e18)) AS BIGINT) END AS mg_co2e,
       c.factor_id, c.factor_version
FROM entries e JOIN choices c USING (classification)
LEFT JOIN rates r ON r.factor_id = c.factor_id AND r.unit = e.unit
WHERE e.kg_co2eq IS NULL
UNION ALL
SELECT year, $type, entry_key, $first, unit_id, 'overridden',
       CAST(round(greatest(least(kg_co2eq * 1e6, 9.2e18), -9.2e18)) AS BIGINT), NULL, NULL
FROM entries
WHERE kg_co2eq IS NOT NULL
