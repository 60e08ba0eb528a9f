/*-------------------------------------------------------------------------
 *
 * oracle.c
 *	  The part's record.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "oracle/oracle_private.h"

static void
oracle_define_parameters(void)
{
	aq_caller_path_init();
	aq_move_on_transform(&aq_transformation_mover);
	aq_oracle_gone_init();
}

const AqPart aq_oracle_part = {
	.name = "oracle",
	.define_parameters = oracle_define_parameters,
};
