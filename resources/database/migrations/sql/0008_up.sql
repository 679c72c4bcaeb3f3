UPDATE work
SET reason_code = CASE reason_code
    WHEN 'damaged' THEN 'corrupt'
    WHEN 'damaged_data' THEN 'corrupt_data'
    WHEN 'lake_metadata_damaged' THEN 'lake_metadata_corrupt'
    WHEN 'lake_unreadable' THEN 'lake_unavailable'
    WHEN 'staging_damaged' THEN 'staging_corrupt'
    WHEN 'ledger_damaged' THEN 'ledger_corrupt'
END
WHERE reason_code IN ('damaged', 'damaged_data', 'lake_metadata_damaged', 'lake_unreadable', 'staging_damaged', 'ledger_damaged');
UPDATE work_event
SET reason_code = CASE reason_code
    WHEN 'damaged' THEN 'corrupt'
    WHEN 'damaged_data' THEN 'corrupt_data'
    WHEN 'lake_metadata_damaged' THEN 'lake_metadata_corrupt'
    WHEN 'lake_unreadable' THEN 'lake_unavailable'
    WHEN 'staging_damaged' THEN 'staging_corrupt'
    WHEN 'ledger_damaged' THEN 'ledger_corrupt'
END
WHERE reason_code IN ('damaged', 'damaged_data', 'lake_metadata_damaged', 'lake_unreadable', 'staging_damaged', 'ledger_damaged');
