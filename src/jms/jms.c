/*-------------------------------------------------------------------------
 *
 * jms.c
 *	  The part's record.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jms/jms_private.h"

static void
jms_define_parameters(void)
{
	aq_rule_on_function(aq_jms_number_is_function);
}

const AqPart aq_jms_part = {
	.name = "jms",
	.define_parameters = jms_define_parameters,
};
