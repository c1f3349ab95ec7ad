-- An owner is late when another process has watched it for a lease without seeing it renew.
-- The length of the lease in milliseconds, and how often it was renewed.
ALTER TABLE owners ADD COLUMN lease INTEGER NOT NULL DEFAULT 30000;
ALTER TABLE owners ADD COLUMN renewals INTEGER NOT NULL DEFAULT 0;
