SELECT DISTINCT unit_id FROM carbon.data_entries WHERE year = $year AND institution = $institution
