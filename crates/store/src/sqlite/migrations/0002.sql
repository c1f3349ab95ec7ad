-- A dead letter belongs to a piece of work of its run, and there is one for each.
-- Those of before do not tell their work, so each gets a name that no work has.
ALTER TABLE dead_letters ADD COLUMN work TEXT NOT NULL DEFAULT '';
UPDATE dead_letters SET work = 'letter-' || id;
CREATE UNIQUE INDEX dead_letters_by_work ON dead_letters (run, work);

-- One row: the highest version that a shared state had when it was removed.
-- States that are new begin behind it, so that a late write cannot reach another state of the same name.
CREATE TABLE shared_removed (
    version INTEGER NOT NULL
) STRICT;

INSERT INTO shared_removed VALUES (0);
