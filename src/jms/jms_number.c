/*-------------------------------------------------------------------------
 *
 * jms_number.c
 *	  Numbers of Jakarta Messaging in conditions: Java's types and arithmetic.
 *
 * A message selector compares numbers whose types are known only from the
 * message, with Java's numeric promotion: int, long, float, double.  A number
 * is passed between these functions as a bytea: its type and its value.  None
 * of them raises an error, whatever the message holds; integers wrap as in
 * Java, doubles become infinite, and a division by zero is null.
 *
 * A condition that calls them stays one that only calls built-in functions:
 * see aq_rule_on_function.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jms/jms_private.h"

#include <math.h>

#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"
#include "utils/syscache.h"

/* in the order of Java's numeric promotion */
typedef enum NumberType
{
	NUMBER_INT,
	NUMBER_LONG,
	NUMBER_FLOAT,
	NUMBER_DOUBLE
} NumberType;

typedef struct Number
{
	NumberType	type;
	int64		exact;			/* of NUMBER_INT and NUMBER_LONG */
	double		approximate;	/* of the others */
} Number;

#define NUMBER_BYTES (1 + sizeof(int64))

/* --- to and from bytea --------------------------------------------------------- */

static Datum
number_datum(const Number *number)
{
	bytea	   *result = palloc(VARHDRSZ + NUMBER_BYTES);

	SET_VARSIZE(result, VARHDRSZ + NUMBER_BYTES);
	VARDATA(result)[0] = (char) number->type;
	if (number->type <= NUMBER_LONG)
		memcpy(VARDATA(result) + 1, &number->exact, sizeof(int64));
	else
		memcpy(VARDATA(result) + 1, &number->approximate, sizeof(double));
	return PointerGetDatum(result);
}

/* Returns false if the bytes were not made by number_datum. */
static bool
read_number(bytea *bytes, Number *number)
{
	const uint8 *data = (const uint8 *) VARDATA_ANY(bytes);

	if (VARSIZE_ANY_EXHDR(bytes) != NUMBER_BYTES || data[0] > NUMBER_DOUBLE)
		return false;
	number->type = (NumberType) data[0];
	if (number->type <= NUMBER_LONG)
		memcpy(&number->exact, data + 1, sizeof(int64));
	else
		memcpy(&number->approximate, data + 1, sizeof(double));
	return true;
}

static Datum
exact_datum(NumberType type, int64 value)
{
	return number_datum(&(Number) {.type = type, .exact = value});
}

static Datum
approximate_datum(NumberType type, double value)
{
	return number_datum(&(Number) {.type = type, .approximate = value});
}

/* --- from JSON -------------------------------------------------------------------- */

static bool
find_key(Jsonb *object, const char *key, int length, JsonbValue *value)
{
	return JB_ROOT_IS_OBJECT(object) && getKeyJsonValueFromContainer(&object->root, key, length, value) != NULL;
}

static bool
is_string(const JsonbValue *value, const char *string)
{
	return value->type == jbvString && value->val.string.len == strlen(string) &&
		memcmp(value->val.string.val, string, value->val.string.len) == 0;
}

/* A number without fraction, in the range of long. */
static bool
read_exact(const char *text, int64 *value)
{
	char	   *end;

	errno = 0;
	*value = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0';
}

/*
 * A number of JSON.  Without a type, or with one that its value does not fit,
 * it is an int or a long if it has no fraction, otherwise a double.
 */
static Datum
from_numeric(Numeric numeric, const JsonbValue *type)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(numeric)));
	int64		value;

	if (is_string(type, "float"))
		return approximate_datum(NUMBER_FLOAT, strtof(text, NULL));
	if (!is_string(type, "double") && read_exact(text, &value))
	{
		bool		is_int = value >= PG_INT32_MIN && value <= PG_INT32_MAX;

		return exact_datum(is_int && !is_string(type, "long") ? NUMBER_INT : NUMBER_LONG, value);
	}
	return approximate_datum(NUMBER_DOUBLE, strtod(text, NULL));
}

/* What JSON lacks, such as {"double": "NaN"} and {"float": "-0.0"}. */
static bool
from_special(const JsonbValue *value, const char *type, double *special)
{
	JsonbValue	name;

	if (value->type != jbvBinary || !JsonContainerIsObject(value->val.binary.data) ||
		getKeyJsonValueFromContainer(value->val.binary.data, type, strlen(type), &name) == NULL)
		return false;
	if (is_string(&name, "NaN"))
		*special = NAN;
	else if (is_string(&name, "Infinity"))
		*special = INFINITY;
	else if (is_string(&name, "-Infinity"))
		*special = -INFINITY;
	else if (is_string(&name, "-0.0"))
		*special = -0.0;
	else
		return false;
	return true;
}

/* aq_jms.number(properties, types, name): null if the property is not a number. */
PG_FUNCTION_INFO_V1(aq_jms_number_of_property);
Datum
aq_jms_number_of_property(PG_FUNCTION_ARGS)
{
	JsonbValue	value;
	JsonbValue	type = {.type = jbvNull};
	text	   *name;
	double		special;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	name = PG_GETARG_TEXT_PP(2);
	if (!find_key(PG_GETARG_JSONB_P(0), VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), &value))
		PG_RETURN_NULL();
	if (!PG_ARGISNULL(1))
		(void) find_key(PG_GETARG_JSONB_P(1), VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), &type);
	if (value.type == jbvNumeric)
		PG_RETURN_DATUM(from_numeric(value.val.numeric, &type));
	if (from_special(&value, "double", &special))
		PG_RETURN_DATUM(approximate_datum(NUMBER_DOUBLE, special));
	if (from_special(&value, "float", &special))
		PG_RETURN_DATUM(approximate_datum(NUMBER_FLOAT, special));
	PG_RETURN_NULL();
}

/* --- from SQL ---------------------------------------------------------------------- */

PG_FUNCTION_INFO_V1(aq_jms_number_of_integer);
Datum
aq_jms_number_of_integer(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(exact_datum(NUMBER_INT, PG_GETARG_INT32(0)));
}

PG_FUNCTION_INFO_V1(aq_jms_number_of_bigint);
Datum
aq_jms_number_of_bigint(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(exact_datum(NUMBER_LONG, PG_GETARG_INT64(0)));
}

PG_FUNCTION_INFO_V1(aq_jms_number_of_real);
Datum
aq_jms_number_of_real(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(approximate_datum(NUMBER_FLOAT, PG_GETARG_FLOAT4(0)));
}

PG_FUNCTION_INFO_V1(aq_jms_number_of_double);
Datum
aq_jms_number_of_double(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(approximate_datum(NUMBER_DOUBLE, PG_GETARG_FLOAT8(0)));
}

/* Milliseconds since 1970. */
PG_FUNCTION_INFO_V1(aq_jms_number_of_time);
Datum
aq_jms_number_of_time(PG_FUNCTION_ARGS)
{
	int64		to_2000 = (int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * 1000;
	TimestampTz time = PG_GETARG_TIMESTAMPTZ(0);
	int64		milliseconds = time / 1000 - (time % 1000 < 0);

	PG_RETURN_DATUM(exact_datum(NUMBER_LONG, milliseconds + to_2000));
}

/* --- calculating ---------------------------------------------------------------------- */

static double
as_double(const Number *number)
{
	return number->type <= NUMBER_LONG ? (double) number->exact : number->approximate;
}

static float
as_float(const Number *number)
{
	return number->type <= NUMBER_LONG ? (float) number->exact : (float) number->approximate;
}

/* The low bits of the result, as Java takes them. */
static bool
calculate_exact(int64 left, char operator, int64 right, int64 *result)
{
	switch (operator)
	{
		case '+':
			*result = (int64) ((uint64) left + (uint64) right);
			return true;
		case '-':
			*result = (int64) ((uint64) left - (uint64) right);
			return true;
		case '*':
			*result = (int64) ((uint64) left * (uint64) right);
			return true;
		case '/':
			if (right == 0)
				return false;
			/* the smallest number divided by -1 raises a signal */
			*result = right == -1 ? (int64) -(uint64) left : left / right;
			return true;
		default:
			return false;
	}
}

static bool
calculate_double(double left, char operator, double right, double *result)
{
	switch (operator)
	{
		case '+':
			*result = left + right;
			return true;
		case '-':
			*result = left - right;
			return true;
		case '*':
			*result = left * right;
			return true;
		case '/':
			if (right == 0)
				return false;
			*result = left / right;
			return true;
		default:
			return false;
	}
}

/*
 * A result of two floats, calculated as doubles and rounded, is the float that
 * Java gets: a double has more than twice as many digits.
 */
static bool
calculate(const Number *left, char operator, const Number *right, Number *result)
{
	result->type = Max(left->type, right->type);
	switch (result->type)
	{
		case NUMBER_INT:
			if (!calculate_exact(left->exact, operator, right->exact, &result->exact))
				return false;
			result->exact = (int32) (uint32) result->exact;
			return true;
		case NUMBER_LONG:
			return calculate_exact(left->exact, operator, right->exact, &result->exact);
		case NUMBER_FLOAT:
			if (!calculate_double(as_float(left), operator, as_float(right), &result->approximate))
				return false;
			result->approximate = (float) result->approximate;
			return true;
		case NUMBER_DOUBLE:
			return calculate_double(as_double(left), operator, as_double(right), &result->approximate);
	}
	return false;
}

PG_FUNCTION_INFO_V1(aq_jms_number_calculate);
Datum
aq_jms_number_calculate(PG_FUNCTION_ARGS)
{
	text	   *operator = PG_GETARG_TEXT_PP(1);
	Number		left;
	Number		right;
	Number		result;

	if (!read_number(PG_GETARG_BYTEA_PP(0), &left) || !read_number(PG_GETARG_BYTEA_PP(2), &right) ||
		VARSIZE_ANY_EXHDR(operator) != 1 || !calculate(&left, *VARDATA_ANY(operator), &right, &result))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(number_datum(&result));
}

PG_FUNCTION_INFO_V1(aq_jms_number_negate);
Datum
aq_jms_number_negate(PG_FUNCTION_ARGS)
{
	Number		number;

	if (!read_number(PG_GETARG_BYTEA_PP(0), &number))
		PG_RETURN_NULL();
	if (number.type > NUMBER_LONG)
		number.approximate = -number.approximate;
	else
	{
		number.exact = (int64) -(uint64) number.exact;
		if (number.type == NUMBER_INT)
			number.exact = (int32) (uint32) number.exact;
	}
	PG_RETURN_DATUM(number_datum(&number));
}

/* --- comparing --------------------------------------------------------------------- */

/* -1, 0 or 1; false if one of them is not a number. */
static bool
compare(const Number *left, const Number *right, int *order)
{
	double		a;
	double		b;

	switch (Max(left->type, right->type))
	{
		case NUMBER_INT:
		case NUMBER_LONG:
			*order = (left->exact > right->exact) - (left->exact < right->exact);
			return true;
		case NUMBER_FLOAT:
			a = as_float(left);
			b = as_float(right);
			break;
		default:
			a = as_double(left);
			b = as_double(right);
			break;
	}
	*order = (a > b) - (a < b);
	return !isnan(a) && !isnan(b);
}

/* aq_jms.compare(left, operator, right): with NaN only <> is true. */
PG_FUNCTION_INFO_V1(aq_jms_number_compare);
Datum
aq_jms_number_compare(PG_FUNCTION_ARGS)
{
	text	   *operator = PG_GETARG_TEXT_PP(1);
	const char *sign = VARDATA_ANY(operator);
	int			length = VARSIZE_ANY_EXHDR(operator);
	Number		left;
	Number		right;
	int			order;

	if (!read_number(PG_GETARG_BYTEA_PP(0), &left) || !read_number(PG_GETARG_BYTEA_PP(2), &right))
		PG_RETURN_NULL();
	if (!compare(&left, &right, &order))
		PG_RETURN_BOOL(length == 2 && sign[0] == '<' && sign[1] == '>');
	while (length-- > 0)
		if (*sign++ == (order < 0 ? '<' : order > 0 ? '>' : '='))
			PG_RETURN_BOOL(true);
	PG_RETURN_BOOL(false);
}

/* --- for conditions -------------------------------------------------------------------- */

/* Is it one of these functions?  Only superusers create functions in C. */
bool
aq_jms_number_is_function(Oid function)
{
	static const PGFunction functions[] = {
		aq_jms_number_of_property, aq_jms_number_of_integer, aq_jms_number_of_bigint, aq_jms_number_of_real,
		aq_jms_number_of_double, aq_jms_number_of_time, aq_jms_number_calculate, aq_jms_number_negate,
		aq_jms_number_compare
	};
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		in_c;
	FmgrInfo	info;

	if (!HeapTupleIsValid(tuple))
		return false;
	in_c = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId &&
		!((Form_pg_proc) GETSTRUCT(tuple))->prosecdef;
	ReleaseSysCache(tuple);
	if (!in_c)
		return false;
	fmgr_info(function, &info);
	for (int i = 0; i < lengthof(functions); i++)
		if (info.fn_addr == functions[i])
			return true;
	return false;
}
