/*-------------------------------------------------------------------------
 *
 * monitor_private.h
 *	  Declarations shared by the files of part "monitor".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_MONITOR_PRIVATE_H
#define AQ_MONITOR_PRIVATE_H

#include "monitor/monitor.h"

#include "miscadmin.h"

/* --- application.c: texts that a session has set --- */

#define AQ_WORD 64

typedef struct AqApplication
{
	char		module[AQ_WORD];
	char		action[AQ_WORD];
	char		client_info[AQ_WORD];
} AqApplication;

extern Size aq_application_shmem_size(void);
extern void aq_application_shmem_init(void *area, bool found);
extern void aq_application_session_start(void);
extern void aq_application_read(int session, AqApplication *words);

/* --- activity.c: current state of all processes --- */

typedef struct AqProcess
{
	int			number;			/* number of the PGPROC, and of the session if it is attached */
	int			pid;
	BackendType type;
	bool		attached;
	bool		background;
	bool		executing;		/* a statement runs */
	bool		active;			/* the same, or a process without statements; and not in an idle wait */
	Oid			database;		/* InvalidOid: none */
	Oid			user;
	uint64		query_id;		/* 0: none */
	const char *program;
	uint32		wait_info;		/* wait of the server; 0: none, or a wait of pgaq */
	AqWaitNow	now;
	AqWaitClass class;
	int			operation;		/* AqTimeKind, or -1 */
	int32		queue;			/* 0: none */
	int			blocker;		/* session's number, or -1 */
	int			final_blocker;
	AqApplication said;
} AqProcess;

extern int	aq_activity_read(AqProcess **result);
extern AqWaitClass aq_activity_wait_class(uint32 info, bool background, bool executing);
extern const char *aq_activity_wait_name(uint32 info);

/* --- session_views.c --- */
extern void aq_session_views_event(AqRow *row, int event, uint32 wait_info, bool background, bool executing);
extern void aq_session_views_parameters(AqRow *row, int event, const uint64 *p);

/* snapshots.c */
extern Size aq_snapshots_shmem_size(void);
extern void aq_snapshots_shmem_init(void *area, bool found);
extern void aq_snapshots_init(void);

#endif							/* AQ_MONITOR_PRIVATE_H */
