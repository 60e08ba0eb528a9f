/*-------------------------------------------------------------------------
 *
 * queue_column_list.h
 *	  The columns of aq_internal.queue, in their order.
 *
 *	  X(id, name, type): description.c, definition.c and admin.c have code for it
 *	  PROPERTY(id, name, type, is it null for "no limit", check)
 *
 * A property needs no other code to be stored.  It is a member of AqQueue with
 * its name, and is set from the arguments with its name of aq.create_queue and
 * aq.alter_queue; a function without such an argument leaves it as it is.  A
 * queue that is made without it, such as an exception queue, has the default of
 * the column.
 *
 * In AqQueue an interval is in microseconds, and a null is -1, of a text NULL.
 * In aq.alter_queue -1, or the text none, is "no limit", and null leaves the
 * property unchanged.
 *
 * check: C code of queue_row.c that raises an error if a value is not allowed.
 * It knows the name, the value, whether it "alters" a queue, and whether that
 * is "sharded".
 *
 * tools/check.py queue_columns compares this list with the SQL.  No guard: it
 * is included more than once, with X and PROPERTY, X for both, or PROPERTY
 * only, and undefines them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef X
#define X(id, name, type)
#endif
#ifndef PROPERTY
#define PROPERTY(id, name, type, nullable, check) X(id, name, type)
#endif

/* the types of the members of AqQueue */
#define AQ_PROPERTY_BOOL bool
#define AQ_PROPERTY_FLOAT8 double
#define AQ_PROPERTY_INT4 int
#define AQ_PROPERTY_INT8 int64
#define AQ_PROPERTY_INTERVAL int64
#define AQ_PROPERTY_TEXT char *

X(ID, queue_id, INT4)
X(NAME, queue_name, TEXT)
X(PAYLOAD_TYPE, payload_type, REGTYPE)
X(MULTI, multiple_consumers, BOOL)
X(SHARDS, shards, INT2)
PROPERTY(MAX_RETRIES, max_retries, INT4, true, check_max_retries(DatumGetInt32(value), alters, sharded))
PROPERTY(RETRY_DELAY, retry_delay, INTERVAL, false, check_not_negative(value, name))
PROPERTY(RETRY_FACTOR, retry_delay_factor, FLOAT8, false, aq_retry_delay_check_factor(DatumGetFloat8(value)))
PROPERTY(RETRY_MAX, retry_delay_max, INTERVAL, true, aq_retry_delay_check_max(value))
PROPERTY(RETRY_JITTER, retry_jitter, FLOAT8, false, aq_retry_delay_check_jitter(DatumGetFloat8(value)))
PROPERTY(RETENTION, retention, INTERVAL, false, check_not_negative(value, name))
X(EXCEPTION_QUEUE, exception_queue_id, INT4)
X(ENQUEUE, enqueue_enabled, BOOL)
X(DEQUEUE, dequeue_enabled, BOOL)
X(KEY, key, INT8)
X(CREATED, created, TIMESTAMPTZ)
X(COMMENT, comment, TEXT)
X(STORE, store, CHAR)
X(TABLE, queue_table_id, INT4)
X(TYPE, queue_type, TEXT)
X(CONVERTED, converted, TIMESTAMPTZ)
X(RIGHTS, rights_id, INT4)
PROPERTY(DISTRIBUTED, distributed, BOOL, false, (void) 0)
PROPERTY(DEFAULT_PRIORITY, default_priority, INT4, true, check_default_priority(DatumGetInt32(value), alters, sharded))
PROPERTY(DEFAULT_DELAY, default_delay, INTERVAL, false, check_not_negative(value, name))
PROPERTY(DEFAULT_EXPIRATION, default_expiration, INTERVAL, true, check_default_expiration(value, alters))
X(PAUSED, paused, TIMESTAMPTZ)
X(PAUSED_BY, paused_by, TEXT)
X(PAUSE_REASON, pause_reason, TEXT)
PROPERTY(MAX_DEPTH, max_depth, INT8, true, check_max_depth(DatumGetInt64(value), alters))
PROPERTY(ON_FULL, on_full, TEXT, false, check_on_full(TextDatumGetCString(value)))
PROPERTY(MAX_RUNNING, max_running, INT4, true, check_max_running(DatumGetInt32(value), alters))
PROPERTY(RATE, rate, TEXT, true, (void) aq_rate_text_read(TextDatumGetCString(value)))

#undef X
#undef PROPERTY
