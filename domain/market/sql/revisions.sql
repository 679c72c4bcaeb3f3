-- One row per changed row: the values of the source now and before.
-- Relations: old_rows, new_rows. Filled in: $pairs (a struct of column, old and new value as JSON, per value
-- column; there may be none), $joined (equality of the key), $ts_code and $row_key (the key's other columns).
WITH old AS (SELECT *, true AS here FROM old_rows),
new AS (SELECT *, true AS here FROM new_rows),
paired AS (
    SELECT
        $ts_code AS ts_code,
        $row_key AS row_key,
        o.here AS was,
        n.here AS is_now,
        CAST([$pairs] AS STRUCT(c VARCHAR, o JSON, n JSON)[]) AS cells
    FROM old AS o
    FULL JOIN new AS n ON $joined
),
found AS (
    SELECT
        ts_code, row_key, was, is_now,
        CASE WHEN was AND is_now THEN list_filter(cells, lambda x: x.o IS DISTINCT FROM x.n) ELSE cells END AS cells
    FROM paired
)
SELECT
    CAST(? AS DATE) AS trade_date,
    CAST(? AS VARCHAR) AS table_name,
    ts_code,
    row_key,
    CAST(? AS TIMESTAMPTZ) AS seen,
    CASE WHEN was IS NULL THEN 'added' WHEN is_now IS NULL THEN 'removed' ELSE 'changed' END AS change,
    CASE WHEN was THEN
        '{' || array_to_string(list_transform(cells, lambda x: '"' || x.c || '":' || coalesce(x.o, 'null')), ',') || '}'
    END AS old,
    CASE WHEN is_now THEN
        '{' || array_to_string(list_transform(cells, lambda x: '"' || x.c || '":' || coalesce(x.n, 'null')), ',') || '}'
    END AS new
FROM found
WHERE was IS NULL OR is_now IS NULL OR len(cells) > 0
ORDER BY ts_code, row_key
