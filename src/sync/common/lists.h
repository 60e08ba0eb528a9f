/*-------------------------------------------------------------------------
 *
 * lists.h
 *	  Enums from the list headers of part "sync".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LISTS_H
#define AQ_LISTS_H

typedef enum AqLatchId
{
#define X(id, name, level, event, children, text) AQ_LATCH_##id,
#include "sync/common/latch_list.h"
#undef X
	AQ_LATCH_COUNT
} AqLatchId;

typedef enum AqMutexType
{
#define X(id, name, event_x, event_s, text) AQ_MUTEX_TYPE_##id,
#include "sync/common/mutex_list.h"
#undef X
	AQ_MUTEX_TYPE_COUNT
} AqMutexType;

typedef enum AqLocation
{
	AQ_LOC_NONE,
#define X(id, name) AQ_LOC_##id,
#include "sync/common/location_list.h"
#undef X
	AQ_LOC_COUNT
} AqLocation;

typedef enum AqWaitClass
{
#define X(id, name, number, identifier) AQ_CLASS_##id,
#include "sync/common/class_list.h"
#undef X
	AQ_CLASS_COUNT
} AqWaitClass;

typedef enum AqEvent
{
#define X(id, name, class, p1, p2, p3, text) AQ_EVENT_##id,
#include "sync/common/event_list.h"
#undef X
	AQ_EVENT_COUNT
} AqEvent;

#endif							/* AQ_LISTS_H */
