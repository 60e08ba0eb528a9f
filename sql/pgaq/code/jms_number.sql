-- Numbers in conditions of Jakarta Messaging's selectors: see src/jms/jms_number.c.

CREATE FUNCTION aq_jms.number(properties jsonb, types jsonb, name text)
RETURNS bytea LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_jms_number_of_property';
COMMENT ON FUNCTION aq_jms.number(jsonb, jsonb, text) IS
'For conditions made from JMS selectors: a number with its Java type, from a property of an
  aq.jms_message; null if the property is not a number.
properties, types: the fields properties and property_types of the message
name: of the property';

CREATE FUNCTION aq_jms.number(value integer)
RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_jms_number_of_integer';
COMMENT ON FUNCTION aq_jms.number(integer) IS 'An int.
For conditions made from JMS selectors.';

CREATE FUNCTION aq_jms.number(value bigint)
RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_jms_number_of_bigint';
COMMENT ON FUNCTION aq_jms.number(bigint) IS 'A long.
For conditions made from JMS selectors.';

CREATE FUNCTION aq_jms.number(value real)
RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_jms_number_of_real';
COMMENT ON FUNCTION aq_jms.number(real) IS 'A float.
For conditions made from JMS selectors.';

CREATE FUNCTION aq_jms.number(value double precision)
RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_jms_number_of_double';
COMMENT ON FUNCTION aq_jms.number(double precision) IS 'A double.
For conditions made from JMS selectors.';

CREATE FUNCTION aq_jms.number(value timestamptz)
RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_jms_number_of_time';
COMMENT ON FUNCTION aq_jms.number(timestamptz) IS
'A long: milliseconds since 1970.
For conditions made from JMS selectors.';

CREATE FUNCTION aq_jms.calculate(left_number bytea, operator text, right_number bytea)
RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_jms_number_calculate';
COMMENT ON FUNCTION aq_jms.calculate(bytea, text, bytea) IS
'For conditions made from JMS selectors: + - * / with Java''s numeric promotion; null for a division
  by zero.
left_number, right_number: as aq_jms.number makes them
operator: one of these characters';

CREATE FUNCTION aq_jms.negate(number bytea)
RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_jms_number_negate';
COMMENT ON FUNCTION aq_jms.negate(bytea) IS
'For conditions made from JMS selectors: the number with the other sign.
number: as aq_jms.number makes it';

CREATE FUNCTION aq_jms.compare(left_number bytea, operator text, right_number bytea)
RETURNS boolean LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_jms_number_compare';
COMMENT ON FUNCTION aq_jms.compare(bytea, text, bytea) IS
'For conditions made from JMS selectors: = <> < <= > >= with Java''s numeric promotion.
left_number, right_number: as aq_jms.number makes them
operator: one of these operators';
