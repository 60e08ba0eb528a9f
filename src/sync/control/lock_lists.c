/*-------------------------------------------------------------------------
 *
 * lock_lists.c
 *	  List parameters that change how some kinds of latch and types of mutex
 *	  wait.
 *
 * pgaq.latch_classes assigns kinds of latch to classes, for example 'shard
 * stream:1, message cache:2'; pgaq.latch_class_1 ... 7 define how a class
 * waits, in Oracle's form:
 *
 *		spin yield waittime sleep0 sleep1 ... sleep7
 *
 * spin is the number of polls (default -1: pgaq.spin_count). yield is how many
 * times the session yields the processor and spins again before it sleeps
 * (default 0).  With waittime 1, the default, a sleep ends when the session is
 * posted or after sleep0, sleep1, ... sleep7, sleep7, ... microseconds; then
 * it spins again.  An omitted sleep is as long as the one before it, an
 * omitted sleep0 is 1000.  With waittime 0 the session sleeps until it is
 * posted, as in class 0.  (Oracle does not document its waittime.)  All other
 * latches are in class 0.
 *
 * pgaq.mutex_types sets this for types of mutex directly, without classes:
 * 'Library Cache:scheme=1 time=10, Library Cache Bucket:spin=500'.
 *
 * Oracle reads these parameters only at start; here they can be changed at any
 * time, for one session or for all.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "sync/common/lock_names.h"
#include "sync/control/control_int.h"
#include "sync/latches/latch_int.h"
#include "sync/mutexes/mutex_int.h"
#include "utils/guc.h"

#define MAX_SLEEP_US	10000000
#define DEFAULT_SLEEP_US 1000

/* --- lists: name:setting, name:setting --------------------------------------- */

typedef struct ListKind
{
	const char *what;			/* what the names stand for */
	const char *const *names;
	int			n;
	const char *where;			/* a view that lists the names; NULL: the hint lists them all */
	const char *setting;		/* what follows the colon */
	Size		size;			/* of the result */
	void		(*clear) (void *result);
	bool		(*set) (void *result, int id, char *text);	/* false: invalid */
} ListKind;

/* The hint of an error: the valid names. */
static void
hint_names(const ListKind *kind)
{
	StringInfoData names;

	if (kind->where != NULL)
	{
		GUC_check_errhint("%s lists them.", kind->where);
		return;
	}
	initStringInfo(&names);
	for (int i = 0; i < kind->n; i++)
		appendStringInfo(&names, "%s%s", i == 0 ? "" : ", ", kind->names[i]);
	GUC_check_errhint("There are %s.", names.data);
	pfree(names.data);
}

/*
 * Parses a list into *result; returns false and sets the detail if it is
 * invalid.
 */
static bool
parse_list(const ListKind *kind, const char *text, void *result)
{
	const char *p = text;

	kind->clear(result);
	for (;;)
	{
		char		setting[100];
		const char *colon;
		const char *end;
		bool		valid;
		int			id;

		while (*p == ',' || isspace((unsigned char) *p))
			p++;
		if (*p == '\0')
			return true;
		end = p + strcspn(p, ",");
		colon = memchr(p, ':', end - p);
		if (colon != NULL)
		{
			id = aq_lock_names_find(kind->names, kind->n, p, (int) (colon - p));
			if (id < 0)
			{
				GUC_check_errdetail("There is no %s named \"%.*s\".", kind->what, (int) (colon - p), p);
				hint_names(kind);
				return false;
			}
		}
		valid = colon != NULL && (Size) (end - colon) <= sizeof(setting);
		if (valid)
		{
			strlcpy(setting, colon + 1, end - colon);
			valid = kind->set(result, id, setting);
		}
		if (!valid)
		{
			GUC_check_errdetail("Expected the name of a %s, a colon and %s at \"%s\".",
								kind->what, kind->setting, p);
			return false;
		}
		p = end;
	}
}

static bool
check_list(const ListKind *kind, const char *text, void **extra)
{
	void	   *result = aq_guc_alloc(kind->size);

	if (result == NULL)
		return false;
	if (!parse_list(kind, text, result))
	{
		aq_guc_free(result);
		return false;
	}
	*extra = result;
	return true;
}

/*
 * Parses an integer, ignoring blanks; returns false if it is invalid or out of
 * bounds.
 */
static bool
parse_number(const char *text, int min, int max, int *value)
{
	char	   *end;
	long		number;

	errno = 0;
	number = strtol(text, &end, 10);
	while (isspace((unsigned char) *end))
		end++;
	*value = (int) number;
	return end != text && *end == '\0' && errno == 0 && number >= min && number <= max;
}

/* --- pgaq.latch_classes -------------------------------------------------------- */

static char *latch_classes_text = NULL;

static void
clear_classes(void *result)
{
	memset(result, 0, AQ_LATCH_COUNT);
}

static bool
set_class(void *result, int id, char *text)
{
	int			class;

	if (!parse_number(text, 0, AQ_LATCH_CLASSES - 1, &class))
		return false;
	((uint8 *) result)[id] = (uint8) class;
	return true;
}

static const ListKind latch_classes = {
	"latch", aq_lock_names_latches, AQ_LATCH_COUNT, "The view sys.\"v$latchname\"", "a class from 0 to 7",
	AQ_LATCH_COUNT, clear_classes, set_class
};

static bool
check_classes(char **newval, void **extra, GucSource source)
{
	return check_list(&latch_classes, *newval, extra);
}

static void
assign_classes(const char *newval, void *extra)
{
	memcpy(aq_latch_class, extra, AQ_LATCH_COUNT);
}

/* --- pgaq.mutex_types ------------------------------------------------------------ */

static char *mutex_types_text = NULL;

static void
clear_ways(void *result)
{
	for (int type = 0; type < AQ_MUTEX_TYPE_COUNT; type++)
		((AqMutexWay *) result)[type] = (AqMutexWay) {-1, -1, -1};
}

/* Any of scheme=, time=, spin=, separated by blanks. */
static bool
set_way(void *result, int id, char *text)
{
	AqMutexWay *way = &((AqMutexWay *) result)[id];
	char	   *rest;
	int			n = 0;

	for (char *word = strtok_r(text, " \t\n", &rest); word != NULL; word = strtok_r(NULL, " \t\n", &rest))
	{
		n++;
		if (strncmp(word, "scheme=", 7) == 0)
		{
			if (!parse_number(word + 7, 0, AQ_MAX_SCHEME, &way->scheme))
				return false;
		}
		else if (strncmp(word, "time=", 5) == 0)
		{
			if (!parse_number(word + 5, 0, AQ_MAX_WAIT_TIME, &way->time))
				return false;
		}
		else if (strncmp(word, "spin=", 5) == 0)
		{
			if (!parse_number(word + 5, 1, AQ_MAX_SPIN, &way->spin))
				return false;
		}
		else
			return false;
	}
	return n > 0;
}

static const ListKind mutex_types = {
	"type of mutex", aq_lock_names_mutexes, AQ_MUTEX_TYPE_COUNT, NULL,
	"any of scheme=0 to 255, time=0 to 100000, spin=1 to 1000000",
	sizeof(aq_mutex_wait_ways), clear_ways, set_way
};

static bool
check_types(char **newval, void **extra, GucSource source)
{
	return check_list(&mutex_types, *newval, extra);
}

static void
assign_types(const char *newval, void *extra)
{
	memcpy(aq_mutex_wait_ways, extra, sizeof(aq_mutex_wait_ways));
}

/* --- pgaq.latch_class_N ----------------------------------------------------------- */

typedef struct ClassField
{
	const char *name;
	int			initial;
	int			min;
	int			max;
} ClassField;

enum
{
	FIELD_SPIN,
	FIELD_YIELD,
	FIELD_TIMED,
	FIELD_SLEEPS,				/* and the following ones */
	FIELDS = FIELD_SLEEPS + AQ_CLASS_SLEEPS
};

static ClassField
class_field(int n)
{
	static const ClassField first[FIELD_SLEEPS] = {
		{"spin", -1, -1, AQ_MAX_SPIN},
		{"yield", 0, 0, AQ_MAX_SPIN},
		{"waittime", 1, 0, 1}
	};

	if (n < FIELD_SLEEPS)
		return first[n];
	return (ClassField) {"sleep", DEFAULT_SLEEP_US, 1, MAX_SLEEP_US};
}

static bool
parse_class(const char *text, AqLatchClass *class)
{
	int			values[FIELDS];
	const char *p = text;

	for (int n = 0; n < FIELDS; n++)
	{
		ClassField	field = class_field(n);
		char	   *end;
		long		value;

		while (isspace((unsigned char) *p))
			p++;
		if (*p == '\0')
		{
			values[n] = n > FIELD_SLEEPS ? values[n - 1] : field.initial;
			continue;
		}
		errno = 0;
		value = strtol(p, &end, 10);
		if (end == p || (*end != '\0' && !isspace((unsigned char) *end)) || errno != 0 ||
			value < field.min || value > field.max)
		{
			GUC_check_errdetail("Number %d, %s, must be from %d to %d, at \"%s\".",
								n + 1, field.name, field.min, field.max, p);
			GUC_check_errhint("A class is \"spin yield waittime sleep0 ... sleep7\", sleeps in microseconds; the end may be left out.");
			return false;
		}
		values[n] = (int) value;
		p = end;
	}
	while (isspace((unsigned char) *p))
		p++;
	if (*p != '\0')
	{
		GUC_check_errdetail("A class has at most %d numbers; \"%s\" is left over.", FIELDS, p);
		return false;
	}
	class->spin = values[FIELD_SPIN];
	class->yields = values[FIELD_YIELD];
	class->timed = values[FIELD_TIMED] != 0;
	memcpy(class->sleep_us, &values[FIELD_SLEEPS], sizeof(class->sleep_us));
	return true;
}

static bool
check_class(char **newval, void **extra, GucSource source)
{
	AqLatchClass *class = aq_guc_alloc(sizeof(AqLatchClass));

	if (class == NULL)
		return false;
	if (!parse_class(*newval, class))
	{
		aq_guc_free(class);
		return false;
	}
	*extra = class;
	return true;
}

/* An assign hook is not told its parameter, so each class has its own. */
#define ASSIGN(n) \
	static void assign_class_##n(const char *newval, void *extra) \
	{ aq_latch_classes[n] = *(AqLatchClass *) extra; }
ASSIGN(1)
ASSIGN(2)
ASSIGN(3)
ASSIGN(4)
ASSIGN(5)
ASSIGN(6)
ASSIGN(7)
#undef ASSIGN

void
aq_lock_lists_define_parameters(void)
{
	static const GucStringAssignHook assign[] = {
		NULL, assign_class_1, assign_class_2, assign_class_3, assign_class_4,
		assign_class_5, assign_class_6, assign_class_7
	};
	static char names[AQ_LATCH_CLASSES][sizeof("pgaq.latch_class_0")];
	static char *texts[AQ_LATCH_CLASSES];

	StaticAssertStmt(lengthof(assign) == AQ_LATCH_CLASSES, "a class without an assign hook");
	for (int class = 1; class < AQ_LATCH_CLASSES; class++)
	{
		snprintf(names[class], sizeof(names[class]), "pgaq.latch_class_%d", class);
		DefineCustomStringVariable(names[class],
								   "How sessions wait for latches of this class: spin yield waittime sleep0 ... sleep7.",
								   "Polls (-1: pgaq.spin_count), yields before sleeping, 1 for sleeps with a time limit, and their microseconds. Trailing numbers are optional; the defaults are -1 0 1 1000.",
								   &texts[class], "",
								   PGC_SUSET, 0,
								   check_class, assign[class], NULL);
	}
	DefineCustomStringVariable("pgaq.latch_classes",
							   "Classes of latches, as name:class, separated by commas.",
							   "Classes are 1 to 7; all other latches are in class 0, which spins pgaq.spin_count times and sleeps until it is posted.",
							   &latch_classes_text, "",
							   PGC_SUSET, 0,
							   check_classes, assign_classes, NULL);
	DefineCustomStringVariable("pgaq.mutex_types",
							   "Wait settings of types of mutex, as type:scheme=n time=n spin=n, separated by commas.",
							   "Each number is optional; by default pgaq.mutex_wait_scheme, pgaq.mutex_wait_time and pgaq.mutex_spin_count apply.",
							   &mutex_types_text, "",
							   PGC_SUSET, 0,
							   check_types, assign_types, NULL);
}
