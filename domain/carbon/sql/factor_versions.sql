-- All values of the year's factors after an upload: the incoming ones that are new follow the newest known.
WITH newest AS (
    SELECT * FROM versions QUALIFY row_number() OVER (PARTITION BY factor_id ORDER BY version DESC) = 1
),
fresh AS (
    SELECT i.*, coalesce(n.version, 0) + 1 AS version
    FROM incoming i LEFT JOIN newest n USING (factor_id)
    WHERE n.factor_id IS NULL OR n.value <> i.value OR n.unit <> i.unit
)
SELECT v.year, v.factor_id, v.version, v.data_entry_type, v.emission_type, v.classification, v.value, v.unit, v.source,
       v.valid_from,
       CASE WHEN f.factor_id IS NOT NULL AND v.version = f.version - 1 THEN CAST($at AS TIMESTAMPTZ) ELSE v.valid_to END
           AS valid_to,
       v.file, v.line, v.job_id
FROM versions v LEFT JOIN fresh f USING (factor_id)
UNION ALL
SELECT CAST($year AS INTEGER), factor_id, CAST(version AS INTEGER), data_entry_type, emission_type, classification, value,
       unit, nullif(source, ''), CAST($at AS TIMESTAMPTZ), NULL, $file, line, CAST($job AS BIGINT)
FROM fresh
ORDER BY factor_id, version
