/*-------------------------------------------------------------------------
 *
 * propagate_part.c
 *	  The AqPart of "propagate".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "propagate/propagate_private.h"

static void
propagate_define_parameters(void)
{
	aq_propagator_register();
	aq_propagation_stream_register();
	aq_propagation_calls_init();
	aq_propagation_drop_init();
}

const AqPart aq_propagate_part = {
	.name = "propagate",
	.define_parameters = propagate_define_parameters,
	.shmem_size = aq_propagator_area_size,
	.shmem_init = aq_propagator_area_init,
};
