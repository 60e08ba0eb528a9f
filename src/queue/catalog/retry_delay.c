/*-------------------------------------------------------------------------
 *
 * retry_delay.c
 *	  How long a message waits after a failed attempt.
 *
 * The delay grows with the number of attempts, up to the queue's limit, and a
 * random part makes it longer, so that messages that fail together are not all
 * tried again at the same moment.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include <math.h>

#include "common/pg_prng.h"

/*
 * The delay in microseconds after this number of failed attempts, the latest
 * one included.  random: from aq_retry_delay_random.  A retry_delay above
 * retry_delay_max does not grow.
 */
int64
aq_retry_delay_after(const AqQueue *queue, int attempts, double random)
{
	double		most = queue->retry_delay_max < 0 ? AQ_INTERVAL_LONGEST
		: Max(queue->retry_delay_max, queue->retry_delay);
	double		delay;

	if (queue->retry_delay == 0)
		return 0;
	/* pow may return infinity */
	delay = Min(queue->retry_delay * pow(queue->retry_delay_factor, Max(attempts, 1) - 1), most);
	delay += delay * queue->retry_jitter * random;
	return (int64) Min(delay, AQ_INTERVAL_LONGEST);
}

/* From 0 up to, not including, 1. */
double
aq_retry_delay_random(void)
{
	return pg_prng_double(&pg_global_prng_state);
}

void
aq_retry_delay_check_factor(double factor)
{
	if (isnan(factor) || isinf(factor) || factor < 1)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"retry_delay_factor\" must be a finite number of at least 1"),
				errhint("1: the retry delay does not grow."));
}

void
aq_retry_delay_check_jitter(double jitter)
{
	if (isnan(jitter) || jitter < 0 || jitter > 1)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"retry_jitter\" must be between 0 and 1"),
				errhint("0.1 makes each retry delay longer by a random part of it, up to a tenth."));
}

/* max: an interval. */
void
aq_retry_delay_check_max(Datum max)
{
	if (aq_interval_option(max, AQ_ERR_OPTION_INVALID, "retry_delay_max") <= 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"retry_delay_max\" must be positive"),
				errhint("For a retry delay that does not grow, use retry_delay_factor => 1; for none, retry_delay => '0'."));
}
