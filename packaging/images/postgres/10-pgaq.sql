-- run once, in POSTGRES_DB, when the data directory is made
CREATE EXTENSION pgaq;
