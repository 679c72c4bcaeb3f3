UPDATE work
SET reason_code = CASE reason_code
    WHEN 'corrupt' THEN 'damaged'
    WHEN 'corrupt_data' THEN 'damaged_data'
    WHEN 'lake_metadata_corrupt' THEN 'lake_metadata_damaged'
    WHEN 'lake_unavailable' THEN 'lake_unreadable'
    WHEN 'staging_corrupt' THEN 'staging_damaged'
    WHEN 'ledger_corrupt' THEN 'ledger_damaged'
END
WHERE reason_code IN ('corrupt', 'corrupt_data', 'lake_metadata_corrupt', 'lake_unavailable', 'staging_corrupt', 'ledger_corrupt');
UPDATE work_event
SET reason_code = CASE reason_code
    WHEN 'corrupt' THEN 'damaged'
    WHEN 'corrupt_data' THEN 'damaged_data'
    WHEN 'lake_metadata_corrupt' THEN 'lake_metadata_damaged'
    WHEN 'lake_unavailable' THEN 'lake_unreadable'
    WHEN 'staging_corrupt' THEN 'staging_damaged'
    WHEN 'ledger_corrupt' THEN 'ledger_damaged'
END
WHERE reason_code IN ('corrupt', 'corrupt_data', 'lake_metadata_corrupt', 'lake_unavailable', 'staging_corrupt', 'ledger_corrupt');
