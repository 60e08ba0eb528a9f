/*-------------------------------------------------------------------------
 *
 * clip.c
 *	  Cutting texts that are too long: never inside a character.
 *
 * In a database with encoding SQL_ASCII the server does not know where characters
 * begin, and treats each byte as a character.  Most of its clients use UTF8, and
 * cannot read a text that ends inside a character.  So in such a database a text
 * that is valid UTF8 is cut as UTF8; other texts are cut at the byte.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base.h"
#include "mb/pg_wchar.h"

#define UTF8_LONGEST 4

/* The number of bytes at the beginning of the text, which has this length, up to the limit. */
int
aq_clip_length(const char *text, int length, int limit)
{
	if (GetDatabaseEncoding() != PG_SQL_ASCII || length <= limit)
		return pg_mbcliplen(text, length, limit);
	for (int begin = limit; begin >= 0 && begin > limit - UTF8_LONGEST; begin--)
	{
		if ((text[begin] & 0xC0) == 0x80)
			continue;			/* not the first byte of a character */
		return begin + pg_utf_mblen((const unsigned char *) &text[begin]) > limit ? begin : limit;
	}
	return limit;
}

/* Copies the text, or its beginning, with a zero byte at its end. */
void
aq_clip_copy(char *to, const char *text, size_t size)
{
	strlcpy(to, text, aq_clip_length(text, strlen(text), size - 1) + 1);
}
