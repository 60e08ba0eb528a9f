/*-------------------------------------------------------------------------
 *
 * application.c
 *	  Module, action and client info that programs set with
 *	  dbms_application_info.
 *
 * Only the session writes its slot.  A change number lets readers get
 * consistent texts.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "monitor/monitor_private.h"

#include "fmgr.h"
#include "utils/builtins.h"

typedef struct Slot
{
	pg_atomic_uint32 change;	/* odd while the texts are being written */
	AqApplication words;
} Slot;

static Slot *slots;

Size
aq_application_shmem_size(void)
{
	return mul_size(aq_session_slots(), sizeof(Slot));
}

void
aq_application_shmem_init(void *area, bool found)
{
	slots = area;
	if (found)
		return;
	memset(area, 0, aq_application_shmem_size());
	for (int i = 0; i < aq_session_slots(); i++)
		pg_atomic_init_u32(&slots[i].change, 0);
}

static void
write_words(const AqApplication *words)
{
	Slot	   *own = &slots[aq_session_own_number];
	uint32		change = pg_atomic_read_u32(&own->change);

	pg_atomic_write_u32(&own->change, change + 1);
	pg_write_barrier();
	own->words = *words;
	pg_write_barrier();
	pg_atomic_write_u32(&own->change, change + 2);
}

/* Clears the texts of the slot's previous session. */
void
aq_application_session_start(void)
{
	AqApplication nothing = {0};

	write_words(&nothing);
}

void
aq_application_read(int session, AqApplication *words)
{
	Slot	   *slot = &slots[session];
	uint32		before;

	do
	{
		before = pg_atomic_read_u32(&slot->change);
		pg_read_barrier();
		*words = slot->words;
		pg_read_barrier();
	} while ((before & 1) != 0 || before != pg_atomic_read_u32(&slot->change));
}

/* Stores the arguments, truncated if necessary, at these offsets. */
static Datum
say(FunctionCallInfo fcinfo, const Size *places)
{
	AqApplication words;

	aq_session_attach();
	words = slots[aq_session_own_number].words;
	for (int i = 0; i < PG_NARGS(); i++)
	{
		char	   *word = (char *) &words + places[i];

		memset(word, 0, AQ_WORD);
		if (!PG_ARGISNULL(i))
		{
			text	   *given = PG_GETARG_TEXT_PP(i);

			memcpy(word, VARDATA_ANY(given),
				   aq_clip_length(VARDATA_ANY(given), VARSIZE_ANY_EXHDR(given), AQ_WORD - 1));
		}
	}
	write_words(&words);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_application_set_module);
Datum
aq_application_set_module(PG_FUNCTION_ARGS)
{
	const Size	places[] = {offsetof(AqApplication, module), offsetof(AqApplication, action)};

	return say(fcinfo, places);
}

PG_FUNCTION_INFO_V1(aq_application_set_action);
Datum
aq_application_set_action(PG_FUNCTION_ARGS)
{
	const Size	places[] = {offsetof(AqApplication, action)};

	return say(fcinfo, places);
}

PG_FUNCTION_INFO_V1(aq_application_set_client_info);
Datum
aq_application_set_client_info(PG_FUNCTION_ARGS)
{
	const Size	places[] = {offsetof(AqApplication, client_info)};

	return say(fcinfo, places);
}

PG_FUNCTION_INFO_V1(aq_application_words);
Datum
aq_application_words(PG_FUNCTION_ARGS)
{
	AqApplication words;
	const char *word[] = {words.module, words.action, words.client_info};
	Datum		values[3];
	bool		nulls[3];

	aq_session_attach();
	words = slots[aq_session_own_number].words;
	for (int i = 0; i < 3; i++)
	{
		nulls[i] = word[i][0] == '\0';
		values[i] = nulls[i] ? (Datum) 0 : CStringGetTextDatum(word[i]);
	}
	return aq_rows_one(fcinfo, values, nulls);
}
