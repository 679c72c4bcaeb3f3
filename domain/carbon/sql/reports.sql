-- Each unit with all that are below it, itself included. UNION, not UNION ALL: a circle made by hand must end.
WITH RECURSIVE below(ancestor, unit_id) AS (
    SELECT unit_id, unit_id FROM (SELECT unit_id FROM units UNION SELECT unit_id FROM sums)
    UNION
    SELECT u.parent_id, b.unit_id
    FROM below b JOIN units u ON u.unit_id = b.ancestor
    WHERE u.parent_id IN (SELECT unit_id FROM units)
),
own AS (
    SELECT s.unit_id, k.module, k.scope, sum(s.mg_co2e) AS mg, sum(s.entries) AS entries, sum(s.unmatched) AS unmatched
    FROM sums s JOIN kinds k USING (data_entry_type, emission_type)
    GROUP BY ALL
)
SELECT CAST($year AS INTEGER) AS year, b.ancestor AS unit_id, o.module, o.scope,
       CAST(coalesce(sum(o.mg) FILTER (WHERE o.unit_id = b.ancestor), 0) AS BIGINT) AS own_mg,
       CAST(sum(o.mg) AS BIGINT) AS total_mg,
       CAST(coalesce(sum(o.entries) FILTER (WHERE o.unit_id = b.ancestor), 0) AS BIGINT) AS own_results,
       CAST(sum(o.entries) AS BIGINT) AS total_results,
       CAST(coalesce(sum(o.unmatched) FILTER (WHERE o.unit_id = b.ancestor), 0) AS BIGINT) AS own_unmatched,
       CAST(sum(o.unmatched) AS BIGINT) AS total_unmatched
FROM below b JOIN own o ON o.unit_id = b.unit_id
GROUP BY ALL
ORDER BY b.ancestor, o.module, o.scope
