ALTER TABLE work DROP COLUMN not_before_fixed;
ALTER TABLE work DROP COLUMN deaths;
