-- What memory servers add to the load is not the owner's.
ALTER TABLE samples ADD COLUMN guest_load5 REAL;
