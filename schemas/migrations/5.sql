-- A captured tree of another host may not say how long it has been up. SQLite 3.53 or newer: one row of the schema
-- changes, and none of the table.
ALTER TABLE samples ALTER COLUMN boottime_ms DROP NOT NULL;
