-- md5 is fixed for ever; DuckDB's own hash may change between releases.
SELECT year, data_entry_type,
       CAST('0x' || left(md5(concat_ws(chr(31), $institution, $source, entry_id)), 15) AS BIGINT) AS entry_key,
       entry_id, $institution AS institution, $source AS source, unit_id, quantity, unit, classification,
       CASE WHEN isnan(kg_co2eq) THEN NULL ELSE kg_co2eq END AS kg_co2eq, nullif(note, '') AS note, details, line
FROM entries
