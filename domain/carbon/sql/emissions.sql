-- Of each entry the pair of words and unit it has (none if its mass was measured), and a mass per kind of emissions.
-- Masses are bounded here, so that what is absurd becomes an error that names its entry: also NaN and infinity.
SELECT e.entry_key, e.unit_id, CASE WHEN e.kg_co2eq IS NULL THEN c.pair END AS pair, {masses}
FROM {entries} e JOIN choices c ON c.classification = e.classification AND c.unit = e.unit
WHERE {where}
