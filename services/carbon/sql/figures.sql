-- What a partition adds up to: a number for each of its parts, the largest first.
SELECT {part} AS part, {number} AS number FROM made GROUP BY ALL ORDER BY number DESC, part
