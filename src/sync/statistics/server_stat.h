/*-------------------------------------------------------------------------
 *
 * server_stat.h
 *	  Statistics of all sessions, whether they use queues or not.
 *
 * Included through sync.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SERVER_STAT_H
#define AQ_SERVER_STAT_H

/*
 * Brackets the execution of a statement, which may execute others: enter
 * returns what leave must get.  by_client: it may be one that the client sent;
 * if it is not inside another one it is counted as a call.  If the statement
 * fails, leave is not called.  Neither raises an error.
 */
extern int	aq_server_stat_enter(bool by_client, bool counts);
extern void aq_server_stat_leave(int outer);

#endif							/* AQ_SERVER_STAT_H */
