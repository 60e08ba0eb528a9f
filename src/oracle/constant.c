/*-------------------------------------------------------------------------
 *
 * constant.c
 *	  The integers of Oracle's packages, such as dbms_aq.immediate().
 *
 * In C, because each CALL evaluates its arguments again, and a function in
 * SQL that returns a number then takes longer than an enqueue.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "oracle/oracle_private.h"

#include "fmgr.h"

#define CONSTANT(name, value) \
	Datum name(PG_FUNCTION_ARGS) \
	{ \
		PG_RETURN_INT32(value); \
	}

PG_FUNCTION_INFO_V1(aq_constant_minus_1);
CONSTANT(aq_constant_minus_1, -1)

PG_FUNCTION_INFO_V1(aq_constant_0);
CONSTANT(aq_constant_0, 0)

PG_FUNCTION_INFO_V1(aq_constant_1);
CONSTANT(aq_constant_1, 1)

PG_FUNCTION_INFO_V1(aq_constant_2);
CONSTANT(aq_constant_2, 2)

PG_FUNCTION_INFO_V1(aq_constant_3);
CONSTANT(aq_constant_3, 3)

PG_FUNCTION_INFO_V1(aq_constant_4);
CONSTANT(aq_constant_4, 4)

PG_FUNCTION_INFO_V1(aq_constant_5);
CONSTANT(aq_constant_5, 5)

PG_FUNCTION_INFO_V1(aq_constant_16);
CONSTANT(aq_constant_16, 16)

PG_FUNCTION_INFO_V1(aq_constant_20);
CONSTANT(aq_constant_20, 20)

PG_FUNCTION_INFO_V1(aq_constant_21);
CONSTANT(aq_constant_21, 21)

PG_FUNCTION_INFO_V1(aq_constant_22);
CONSTANT(aq_constant_22, 22)

PG_FUNCTION_INFO_V1(aq_constant_23);
CONSTANT(aq_constant_23, 23)

PG_FUNCTION_INFO_V1(aq_constant_24);
CONSTANT(aq_constant_24, 24)

PG_FUNCTION_INFO_V1(aq_constant_25);
CONSTANT(aq_constant_25, 25)

PG_FUNCTION_INFO_V1(aq_constant_26);
CONSTANT(aq_constant_26, 26)

PG_FUNCTION_INFO_V1(aq_constant_27);
CONSTANT(aq_constant_27, 27)

PG_FUNCTION_INFO_V1(aq_constant_28);
CONSTANT(aq_constant_28, 28)

PG_FUNCTION_INFO_V1(aq_constant_29);
CONSTANT(aq_constant_29, 29)
