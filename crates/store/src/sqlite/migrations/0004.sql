-- Every row has a checksum of what it holds, so that a row that is not what was written is found where it is read.
-- `row_checksum` is a function that the store gives to its connections.
ALTER TABLE runs ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET checksum = row_checksum('runs', id, workflow, workflow_version, status, reason, version, owner, fence,
    wake_at, created_at, updated_at);

ALTER TABLE definitions ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE definitions SET checksum = row_checksum('definitions', (SELECT id FROM runs WHERE key = run), body);

ALTER TABLE checkpoints ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE checkpoints SET checksum =
    row_checksum('checkpoints', (SELECT id FROM runs WHERE key = run), version, body);

ALTER TABLE commands ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE commands SET checksum =
    row_checksum('commands', (SELECT id FROM runs WHERE key = run), kind, body, at);

ALTER TABLE owners ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE owners SET checksum = row_checksum('owners', process, joined_at, expires_at, lease, renewals);

ALTER TABLE shared ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE shared SET checksum = row_checksum('shared', kind, name, version, body);

ALTER TABLE shared_removed ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE shared_removed SET checksum = row_checksum('shared_removed', version);

ALTER TABLE dead_letters ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE dead_letters SET checksum = row_checksum('dead_letters', run, work, node, body, at);

-- One row: how many commits the database has, and a number that no other database has. The number of the last commit
-- that was answered is also kept outside, so that commits that are missing afterwards are noticed.
CREATE TABLE commits (
    number   INTEGER NOT NULL,
    database INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

INSERT INTO commits VALUES (0, random(), 0);
UPDATE commits SET checksum = row_checksum('commits', number, database);

-- One row for each time that commits were missing when the database was opened: those after `found` up to `answered`.
CREATE TABLE losses (
    at       INTEGER NOT NULL,
    found    INTEGER NOT NULL,
    answered INTEGER NOT NULL,
    what     TEXT    NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
