-- The references of jobs, as they are now.
SELECT stored.*
FROM refs.references AS stored
SEMI JOIN jobs ON jobs.source = stored.source AND jobs.reference_id = stored.reference_id
