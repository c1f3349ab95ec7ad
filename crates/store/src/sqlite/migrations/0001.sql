-- One row for each run, with all that lists and claims look at.
-- A key is never given again, so that a late write cannot reach another run.
CREATE TABLE runs (
    key              INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT    NOT NULL UNIQUE,
    workflow         TEXT    NOT NULL,
    workflow_version INTEGER NOT NULL,
    status           TEXT    NOT NULL,
    reason           TEXT,
    version          INTEGER NOT NULL,
    owner            INTEGER,
    fence            INTEGER NOT NULL,
    wake_at          INTEGER,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL
) STRICT;

CREATE INDEX runs_by_status ON runs (status, key);
CREATE INDEX runs_by_workflow ON runs (workflow, status, key);
CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_due ON runs (workflow, workflow_version, wake_at) WHERE owner IS NULL AND wake_at IS NOT NULL;

-- What a run was created with; apart from the runs, so that lists need not read it.
CREATE TABLE definitions (
    run  INTEGER PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    body TEXT    NOT NULL
) STRICT;

-- The logs: one row for all events that were written together, as an array of JSON.
-- The rows lie in the order in which they were written: rows in the order of their runs would touch one page for
-- each run in every commit, and more than halve the rate of writes.
CREATE TABLE events (
    run      INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    body     TEXT    NOT NULL,
    UNIQUE (run, first)
) STRICT;

-- The last state of a run that was kept as a whole.
CREATE TABLE checkpoints (
    run     INTEGER PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL
) STRICT;

-- What was asked of runs and is not handled yet.
CREATE TABLE commands (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    run  INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    kind TEXT    NOT NULL,
    body TEXT    NOT NULL,
    at   INTEGER NOT NULL
) STRICT;

CREATE INDEX commands_by_run ON commands (run);

-- Who drives runs, and until when without renewing.
CREATE TABLE owners (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    process    INTEGER NOT NULL,
    joined_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

-- Small states that runs and processes share.
CREATE TABLE shared (
    kind    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- Work that was put aside after it failed.
CREATE TABLE dead_letters (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    run  TEXT    NOT NULL,
    node TEXT    NOT NULL,
    body TEXT    NOT NULL,
    at   INTEGER NOT NULL
) STRICT;

CREATE INDEX dead_letters_by_run ON dead_letters (run);
