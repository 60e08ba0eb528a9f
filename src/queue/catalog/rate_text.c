/*-------------------------------------------------------------------------
 *
 * rate_text.c
 *	  Rates as users write them: '100/minute', '5/10 seconds burst 1'.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

static const struct
{
	const char *name;
	int64		ns;
}			units[] =

{
	{"millisecond", INT64CONST(1000000)},
	{"second", AQ_SECOND_NS},
	{"minute", 60 * AQ_SECOND_NS},
	{"hour", 3600 * AQ_SECOND_NS},
	{"day", 86400 * AQ_SECOND_NS},
};

/* longest time in which a rate may let pass its burst */
#define LONGEST (366 * 86400 * AQ_SECOND_NS)

/* Reads a positive number, and moves *text past it and the spaces behind it; 0: the text is not one. */
static int64
read_number(const char **text)
{
	int64		number = 0;

	while (**text >= '0' && **text <= '9' && number <= PG_INT32_MAX)
		number = 10 * number + *(*text)++ - '0';
	while (**text == ' ')
		(*text)++;
	return number <= PG_INT32_MAX ? number : 0;
}

/* Is this the next word?  If so, moves *text past it and the spaces behind it. */
static bool
read_word(const char **text, const char *word)
{
	size_t		length = strlen(word);

	if (strncmp(*text, word, length) != 0)
		return false;
	*text += length;
	if (**text == 's')
		(*text)++;
	if (**text != ' ' && **text != '\0')
		return false;
	while (**text == ' ')
		(*text)++;
	return true;
}

/* Reads the time after the slash, in nanoseconds; 0: the text is not one. */
static int64
read_time(const char **text)
{
	int64		number = **text >= '0' && **text <= '9' ? read_number(text) : 1;

	for (size_t i = 0; i < lengthof(units); i++)
	{
		const char *after = *text;

		if (!read_word(&after, units[i].name))
			continue;
		*text = after;
		return number <= LONGEST / units[i].ns ? number * units[i].ns : 0;
	}
	return 0;
}

/* Returns false if the text is not a rate. */
static bool
parse(const char *text, AqRate *rate)
{
	int64		messages = read_number(&text),
				burst = messages,
				time;

	if (messages == 0 || *text++ != '/')
		return false;
	while (*text == ' ')
		text++;
	time = read_time(&text);
	if (time == 0)
		return false;
	if (*text != '\0')
		burst = read_word(&text, "burst") ? read_number(&text) : 0;
	if (*text != '\0' || burst == 0)
		return false;
	/* rounded up: never more messages than that */
	rate->period = (time + messages - 1) / messages;
	if (burst > LONGEST / rate->period)
		return false;
	rate->span = burst * rate->period;
	return true;
}

/* NULL: no rate. */
AqRate
aq_rate_text_read(const char *text)
{
	AqRate		rate = {0};

	if (text != NULL && !parse(text, &rate))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"rate\" must be like '100/minute' or '5/10 seconds burst 1', not \"%s\"", text),
				errhint("Write the number of messages, the time in milliseconds, seconds, minutes, hours or days, and how many messages may "
						"come at once, unless it is that number. The burst may take 366 days at most."));
	return rate;
}
