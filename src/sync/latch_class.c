/*-------------------------------------------------------------------------
 *
 * latch_class.c
 *	  Classes of latches: kinds of latch that spin longer or shorter than others.
 *
 * pgaq.latch_classes gives kinds of latch a class, 'shard stream:1, message
 * cache:2'; pgaq.latch_class_1 ... 7 say how often a class polls.  Class 0 is
 * everything else and polls pgaq.spin_count times, as does a class that has no
 * number of its own.  In Oracle the same list is read at start only; here both
 * may change at any time, for one session or for all.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "sync/sync_int.h"
#include "utils/guc.h"

static const char *const latch_names[] = {
#define X(id, name, level, event, children, text) name,
#include "sync/latch_list.h"
#undef X
};

static char *classes_text = NULL;

static int
find_latch(const char *name, int len)
{
	for (int id = 0; id < AQ_LATCH_COUNT; id++)
	{
		if ((int) strlen(latch_names[id]) == len && pg_strncasecmp(latch_names[id], name, len) == 0)
			return id;
	}
	return -1;
}

/* 'name:class, ...' into classes[]; false with a detail when it cannot be read. */
static bool
parse_classes(const char *text, uint8 *classes)
{
	const char *p = text;

	memset(classes, 0, AQ_LATCH_COUNT);
	for (;;)
	{
		const char *colon;
		int			id;

		while (*p == ',' || isspace((unsigned char) *p))
			p++;
		if (*p == '\0')
			return true;
		colon = strchr(p, ':');
		if (colon == NULL || colon[1] < '0' || colon[1] >= '0' + AQ_LATCH_CLASSES ||
			(colon[2] != '\0' && colon[2] != ',' && !isspace((unsigned char) colon[2])))
		{
			GUC_check_errdetail("Expected the name of a latch, a colon and a class from 0 to %d at \"%s\".",
								AQ_LATCH_CLASSES - 1, p);
			return false;
		}
		id = find_latch(p, (int) (colon - p));
		if (id < 0)
		{
			GUC_check_errdetail("There is no latch named \"%.*s\".", (int) (colon - p), p);
			GUC_check_errhint("The view sys.\"v$latchname\" lists them.");
			return false;
		}
		classes[id] = (uint8) (colon[1] - '0');
		p = colon + 2;
	}
}

static bool
check_classes(char **newval, void **extra, GucSource source)
{
	uint8	   *classes = aq_guc_alloc(AQ_LATCH_COUNT);

	if (classes == NULL)
		return false;
	if (!parse_classes(*newval, classes))
	{
		aq_guc_free(classes);
		return false;
	}
	*extra = classes;
	return true;
}

static void
assign_classes(const char *newval, void *extra)
{
	memcpy(aq_latch_class, extra, AQ_LATCH_COUNT);
}

void
aq_latch_class_define_parameters(void)
{
	static char names[AQ_LATCH_CLASSES][sizeof("pgaq.latch_class_0")];

	DefineCustomStringVariable("pgaq.latch_classes",
							   "Latches that have a class of their own, as name:class, separated by commas.",
							   "Classes are 1 to 7; all other latches are class 0.",
							   &classes_text, "",
							   PGC_SUSET, 0,
							   check_classes, assign_classes, NULL);
	for (int class = 1; class < AQ_LATCH_CLASSES; class++)
	{
		snprintf(names[class], sizeof(names[class]), "pgaq.latch_class_%d", class);
		DefineCustomIntVariable(names[class],
								"How often latches of this class are polled before the session sleeps.",
								"-1 polls as often as pgaq.spin_count says.",
								&aq_latch_class_spin[class], -1, -1, 1000000,
								PGC_SUSET, 0, NULL, NULL, NULL);
	}
}
