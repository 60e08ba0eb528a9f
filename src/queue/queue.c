/*-------------------------------------------------------------------------
 *
 * queue.c
 *	  The AqPart of "queue".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

/* The files' areas of shared memory, in order. */
static const struct
{
	Size		(*size) (void);
	void		(*init) (void *area, bool found);
}			areas[] =

{
	{aq_definition_clock_size, aq_definition_clock_init},
	{aq_shm_size, aq_shm_init},
	{aq_users_shmem_size, aq_users_shmem_init},
	{aq_waiters_shmem_size, aq_waiters_shmem_init},
	{aq_channel_shmem_size, aq_channel_shmem_init},
	{aq_temporary_owner_size, aq_temporary_owner_init},
	{aq_helper_area_size, aq_helper_area_init},
	{aq_history_wish_size, aq_history_wish_init},
};

static Size
queue_shmem_size(void)
{
	Size		size = 0;

	for (int i = 0; i < lengthof(areas); i++)
		size = add_size(size, areas[i].size());
	return size;
}

static void
queue_shmem_init(void *area, bool found)
{
	char	   *place = area;

	for (int i = 0; i < lengthof(areas); i++)
	{
		areas[i].init(place, found);
		place += areas[i].size();
	}
	aq_time_on_queue(aq_pins_book_time);
}

static void
queue_define_parameters(void)
{
	aq_parameters_define();
	aq_trace_context_define();
	aq_store_register(&aq_convert_store);
	aq_handle_on_pressure(aq_pins_give_back);
	aq_share_init();
	aq_users_init();
	aq_autonomous_init();
	aq_catalog_init();
	aq_upkeep_init();
	aq_temporary_end_init();
	aq_store_xact_init();
	aq_property_init();
	aq_guard_init();
	aq_definition_init();
	aq_view_guard_init();
	aq_message_qual_init();
	aq_run_as_init();
	aq_context_init();
	aq_helper_pool_register();
	aq_position_init();
	aq_history_init();
}

static void
queue_session_exit(void)
{
	aq_temporary_owner_session_exit();
	aq_pins_session_exit();
}

const AqPart aq_queue_part = {
	.name = "queue",
	.define_parameters = queue_define_parameters,
	.shmem_size = queue_shmem_size,
	.shmem_init = queue_shmem_init,
	.session_exit = queue_session_exit,
};
