PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE migrations (
    version INTEGER PRIMARY KEY,
    hash    TEXT    NOT NULL,
    at      INTEGER NOT NULL
) STRICT;
INSERT INTO migrations VALUES(1,'315d277aa9c121fb28cf285a77135191b0c06a78ef60b28e3ef7d8b12c665db9',1800000001000000000);
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
INSERT INTO runs VALUES(1,'order-1','flow',1,'running',NULL,3,NULL,1,1800000001000000000,1800000001000000000,1800000001000000000);
INSERT INTO runs VALUES(2,'order-2','flow',1,'running',NULL,1,NULL,0,0,1800000001000000000,1800000001000000000);
CREATE TABLE definitions (
    run  INTEGER PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    body TEXT    NOT NULL
) STRICT;
INSERT INTO definitions VALUES(1,'{"workflow":"flow"}');
INSERT INTO definitions VALUES(2,'{"workflow":"flow"}');
CREATE TABLE events (
    run      INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    body     TEXT    NOT NULL,
    UNIQUE (run, first)
) STRICT;
INSERT INTO events VALUES(1,0,1,1800000001000000000,-5014608901329437570,'[{"n":0}]');
INSERT INTO events VALUES(1,1,2,1800000001000000000,2390054681739617408,replace('[{"n":1},\n{"n":2,"text":"ü"}]','\n',char(10)));
INSERT INTO events VALUES(2,0,1,1800000001000000000,-3903945880825158638,'[{"n":0}]');
CREATE TABLE checkpoints (
    run     INTEGER PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL
) STRICT;
INSERT INTO checkpoints VALUES(1,3,'[2]');
CREATE TABLE commands (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    run  INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    kind TEXT    NOT NULL,
    body TEXT    NOT NULL,
    at   INTEGER NOT NULL
) STRICT;
INSERT INTO commands VALUES(1,1,'signal','{}',1800000001000000000);
CREATE TABLE owners (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    process    INTEGER NOT NULL,
    joined_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE TABLE shared (
    kind    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
INSERT INTO shared VALUES('breaker','mail',2,'{"open":true}');
CREATE TABLE dead_letters (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    run  TEXT    NOT NULL,
    node TEXT    NOT NULL,
    body TEXT    NOT NULL,
    at   INTEGER NOT NULL
) STRICT;
INSERT INTO dead_letters VALUES(1,'order-1','pay','{"input":1}',1800000002000000000);
INSERT INTO dead_letters VALUES(2,'order-1','pay','{"input":1}',1800000003000000000);
INSERT INTO dead_letters VALUES(3,'order-2','ship','{"input":1}',1800000004000000000);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('owners',1);
INSERT INTO sqlite_sequence VALUES('runs',2);
INSERT INTO sqlite_sequence VALUES('commands',1);
INSERT INTO sqlite_sequence VALUES('dead_letters',4);
CREATE INDEX runs_by_status ON runs (status, key);
CREATE INDEX runs_by_workflow ON runs (workflow, status, key);
CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_due ON runs (workflow, workflow_version, wake_at) WHERE owner IS NULL AND wake_at IS NOT NULL;
CREATE INDEX commands_by_run ON commands (run);
CREATE INDEX dead_letters_by_run ON dead_letters (run);
COMMIT;
