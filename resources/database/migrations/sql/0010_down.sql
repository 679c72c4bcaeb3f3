DROP TABLE source_state;
DROP TABLE scrape_run;
