/*-------------------------------------------------------------------------
 *
 * event_names.c
 *	  Names of events and of their classes, from the list headers.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync/waits/event.h"

const AqClassName aq_event_names_classes[AQ_CLASS_COUNT] = {
#define X(id, name, number, identifier) {name, number, INT64CONST(identifier)},
#include "sync/common/class_list.h"
#undef X
};

const AqEventName aq_event_names[AQ_EVENT_COUNT] = {
#define X(id, name, class, p1, p2, p3, text) {name, AQ_CLASS_##class, {p1, p2, p3}, text},
#include "sync/common/event_list.h"
#undef X
};
