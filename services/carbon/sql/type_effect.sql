-- The sums of a type's results, calculated from two sets of entries or factors.
SELECT * FROM
    (SELECT CAST(coalesce(sum(mg_co2e), 0) AS BIGINT) AS before_mg,
            count(*) FILTER (WHERE status = 'unmatched') AS unmatched_before FROM before),
    (SELECT CAST(coalesce(sum(mg_co2e), 0) AS BIGINT) AS after_mg,
            count(*) FILTER (WHERE status = 'unmatched') AS unmatched_after FROM after)
