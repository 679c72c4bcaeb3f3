-- In the order of the entries. md5 is fixed for ever; DuckDB's own hash may change between releases.
SELECT CAST('0x' || left(md5(concat_ws(chr(31), $institution, $source, entry_id)), 15) AS BIGINT) AS entry_key
FROM entries
