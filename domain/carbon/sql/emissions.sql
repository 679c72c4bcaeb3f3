-- One row per entry and kind of emissions. A measured mass takes the place of everything calculated.
SELECT e.year, $type AS data_entry_type, e.entry_key, r.emission_type, e.unit_id,
       CASE WHEN r.factor_id IS NULL THEN 'unmatched' ELSE 'matched' END AS status,
       -- Bounded, so that what is absurd is told by its entry; NULL stays NULL.
       CASE WHEN r.mg_per_unit IS NOT NULL THEN CAST(round(least(e.quantity * r.mg_per_unit, 9.2e18)) AS BIGINT) END
           AS mg_co2e,
       r.factor_id, r.factor_version
FROM entries e JOIN rates r USING (classification, unit)
WHERE e.kg_co2eq IS NULL
UNION ALL
SELECT year, $type, entry_key, $first, unit_id, 'overridden',
       CAST(round(least(kg_co2eq * 1e6, 9.2e18)) AS BIGINT), NULL, NULL
FROM entries
WHERE kg_co2eq IS NOT NULL
