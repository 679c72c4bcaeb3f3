SELECT CAST($year AS INTEGER) AS year, k.module, s.unit_id, s.data_entry_type, s.emission_type, k.scope, s.mg_co2e,
       s.entries, s.unmatched, s.overridden
FROM sums s JOIN kinds k USING (data_entry_type, emission_type)
WHERE k.module = $module
ORDER BY s.unit_id, s.data_entry_type, s.emission_type
