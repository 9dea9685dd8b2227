-- Where a trace comes from. That a dataset may lack more columns is no matter of a host's database.
ALTER TABLE hosts ADD COLUMN source TEXT;
