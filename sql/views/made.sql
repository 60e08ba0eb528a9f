-- The helpers of sql/views/make.sql are for the installation only.
DROP PROCEDURE aq._make_view(text, text, text, text);
DROP PROCEDURE aq._make_source(text, text, text, integer);
