-- What runs were created with is stored once for all that were created alike: most runs of a workflow are.
-- The checksum of a definition stays that of the run's id and the text, so it binds the two as before.
CREATE TABLE texts (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    body     TEXT    NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

CREATE INDEX texts_by_checksum ON texts (checksum);

INSERT INTO texts (body, checksum) SELECT DISTINCT body, row_checksum('texts', body) FROM definitions;

CREATE TABLE definitions_by_text (
    run      INTEGER PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    text     INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

INSERT INTO definitions_by_text
    SELECT run, (SELECT id FROM texts WHERE texts.checksum = row_checksum('texts', definitions.body)
        AND texts.body = definitions.body), checksum
    FROM definitions;

DROP TABLE definitions;
ALTER TABLE definitions_by_text RENAME TO definitions;

-- A text goes with the last run that has it.
CREATE INDEX definitions_with_text ON definitions (text);
