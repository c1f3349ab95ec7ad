-- The time of the store: the instant of the last commit. Processes whose clocks disagree all count from there.
ALTER TABLE commits ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
UPDATE commits SET checksum = row_checksum('commits', number, database, at);
