/*
 * book.c
 *		The ledger, and payloads that can be checked byte by byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

static char pattern[PATTERN_LENGTH * 2];

/* ---------------------------------------------------------------- ledger */

void
ledger_flush(struct session *s, bool durable)
{
	const char *p = (const char *) s->pending;
	size_t		left = s->npending * sizeof(struct record);

	if (s->ledger < 0)
		return;
	while (left > 0)
	{
		ssize_t		n = write(s->ledger, p, left);

		if (n < 0)
		{
			if (errno == EINTR)
				continue;
			die("could not write the ledger: %s", strerror(errno));
		}
		p += n;
		left -= (size_t) n;
	}
	s->npending = 0;
	if (durable && fdatasync(s->ledger) != 0)
		die("could not sync the ledger: %s", strerror(errno));
}

void
ledger_note(struct session *s, char kind, int priority, uint32_t session, uint64_t first, int count)
{
	struct record *last;

	if (s->ledger < 0)
		return;
	if (s->npending > 0 && kind == 'D')
	{
		last = &s->pending[s->npending - 1];
		if (last->kind == 'D' && last->session == session && last->priority == priority &&
			last->first + last->count == first && last->count + count <= UINT16_MAX)
		{
			last->count = (uint16_t) (last->count + count);
			return;
		}
	}
	if (s->npending == s->maxpending)
	{
		s->maxpending = s->maxpending ? s->maxpending * 2 : 256;
		s->pending = realloc(s->pending, s->maxpending * sizeof(struct record));
		if (!s->pending)
			die("out of memory");
	}
	s->pending[s->npending++] = (struct record) {
		.kind = (uint8_t) kind, .priority = (uint8_t) priority, .count = (uint16_t) count,
		.session = session, .first = first
	};
}

/* What was noted is known outside the database before the next step is sent. */
void
ledger_before(struct session *s)
{
	if (s->npending >= 4096 || opt.fsync == FSYNC_EACH)
		ledger_flush(s, opt.fsync == FSYNC_EACH);
}

void
ledger_open(struct session *s)
{
	char		path[PATH_MAX];
	char		head[512];
	int			n;

	s->ledger = -1;
	if (!opt.ledger)
		return;
	snprintf(path, sizeof(path), "%s/%s%s-%04d.led", opt.ledger, opt.label, opt.role, s->number);
	s->ledger = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
	if (s->ledger < 0)
		die("could not create %s: %s", path, strerror(errno));
	n = snprintf(head, sizeof(head),
				 "{\"role\": \"%s\", \"client\": %d, \"queue\": \"%s\", \"consumer\": \"%s\", \"batch\": %d}\n",
				 opt.role, s->number, opt.queue, s->consumer ? s->consumer : "", opt.batch);
	if (write(s->ledger, head, (size_t) n) != n)
		die("could not write %s: %s", path, strerror(errno));
}

/* --------------------------------------------------------------- payload */

void
payload_init(void)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	uint32_t	x = 12345;

	for (int i = 0; i < PATTERN_LENGTH; i++)
	{
		x = x * 1664525 + 1013904223;
		pattern[i] = pattern[i + PATTERN_LENGTH] = letters[(x >> 20) % 64];
	}
}

static size_t
filler_offset(uint32_t session, uint64_t seq)
{
	return (session * UINT64_C(977) + seq * 131) % PATTERN_LENGTH;
}

/* Fillers longer than the pattern repeat it. */
static void
fill(char *to, size_t offset, size_t length)
{
	while (length > 0)
	{
		size_t		n = length < PATTERN_LENGTH ? length : PATTERN_LENGTH;

		memcpy(to, pattern + offset, n);
		to += n;
		length -= n;
	}
}

static void
put_hex(char *to, uint64_t value, int digits)
{
	static const char hex[] = "0123456789abcdef";

	for (int i = digits - 1; i >= 0; i--, value >>= 4)
		to[i] = hex[value & 15];
}

static bool
get_hex(const char *from, int digits, uint64_t *value)
{
	uint64_t	v = 0;

	for (int i = 0; i < digits; i++)
	{
		char		c = from[i];

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t) (c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t) (c - 'a' + 10);
		else
			return false;
	}
	*value = v;
	return true;
}

char *
payload_put(char *to, uint32_t session, uint64_t seq, uint64_t stamp)
{
	put_hex(to, session, 8);
	to[8] = '.';
	put_hex(to + 9, seq, 12);
	to[21] = '.';
	put_hex(to + 22, stamp, 16);
	to[38] = '.';
	fill(to + HEADER_LENGTH, filler_offset(session, seq), (size_t) (opt.payload - HEADER_LENGTH));
	return to + opt.payload;
}

bool
payload_check(const char *p, int length, uint32_t *session, uint64_t *seq, uint64_t *stamp)
{
	uint64_t	s;
	size_t		offset,
				left;

	if (length < HEADER_LENGTH || !get_hex(p, 8, &s) || !get_hex(p + 9, 12, seq) || !get_hex(p + 22, 16, stamp))
		return false;
	*session = (uint32_t) s;
	if (length != opt.payload || p[8] != '.' || p[21] != '.' || p[38] != '.')
		return false;
	offset = filler_offset(*session, *seq);
	left = (size_t) (length - HEADER_LENGTH);
	for (p += HEADER_LENGTH; left > 0;)
	{
		size_t		n = left < PATTERN_LENGTH ? left : PATTERN_LENGTH;

		if (memcmp(p, pattern + offset, n) != 0)
			return false;
		p += n;
		left -= n;
	}
	return true;
}
