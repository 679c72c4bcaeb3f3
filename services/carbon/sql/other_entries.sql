SELECT year, entry_key, unit_id, quantity, unit, classification, kg_co2eq
FROM present
WHERE NOT (institution = $institution AND source = $source)
