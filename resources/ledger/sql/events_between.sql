-- What happened after the event `after`, up to the event `until`: by kind, event and reason, how often, and
-- whether with an error; of work that ended, also how long it took from its first claim, as the number of the first bound that it
-- does not exceed. Read along the primary key: only what is new costs anything.
WITH new_events AS (
    SELECT work.kind, work_event.event, work_event.status, work_event.reason_code,
           CASE WHEN work_event.error_kind IS NULL THEN 0 ELSE 1 END AS failed,
           CASE WHEN work_event.status IN ('completed', 'failed') AND work.finished_at IS NOT NULL
                THEN {seconds} END AS seconds
    FROM work_event
    JOIN work ON work.id = work_event.work_id
    WHERE work_event.id > :after AND work_event.id <= :until
)
SELECT kind, event, status, reason_code, failed, {bucket} AS bucket, count(*) AS number,
       coalesce(sum(seconds), 0) AS seconds
FROM new_events
GROUP BY kind, event, status, reason_code, failed, {bucket}
