/*-------------------------------------------------------------------------
 *
 * lease_variants.h
 *	  Wrong variants of the protocol in src/node/NODES.md, each of which
 *	  test_lease_protocol.c must find.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LEASE_VARIANTS_H
#define AQ_LEASE_VARIANTS_H

#define HOLDER "one holder"
#define TWICE "no consumed message comes back"
#define LOST "no message is lost"
#define STUCK "no message without a holder for ever"

/*
 * X(name, a small model that shows it, the invariant that it violates, what it
 * does wrong).  The epoch of FINISH is not among them: the answer depends on it,
 * but marking messages as done that an old holder has consumed violates nothing.
 */
#define LEASE_VARIANTS(X) \
	X(GRANT_TAKING, one_node, HOLDER, "sessions of the origin begin to consume messages of a unit that another node holds") \
	X(GRANT_NOT_DURABLE, one_message, HOLDER, "a crash of the origin forgets the holder") \
	X(EPOCH_REUSED, one_message, HOLDER, "a grant does not raise the epoch") \
	X(LEASE_TAKEN, one_message, TWICE, "messages are leased that running transactions of the origin have taken") \
	X(LEASE_NOT_DURABLE, one_message, TWICE, "a crash of the origin forgets which messages are leased") \
	X(TOKEN_REUSED, one_message, HOLDER, "each RESUME has the same token") \
	X(RESUME_NEVER, one_message, HOLDER, "deliveries go on after one was lost") \
	X(RESUME_ANY_COPY, one_message, STUCK, "a copy under another epoch counts as a copy") \
	X(RESUME_FINISHED, one_message, TWICE, "the answer to RESUME makes messages ready that were finished in the meantime") \
	X(RESUME_ANY_EPOCH, two_nodes, TWICE, "the answer to RESUME makes messages ready that were leased anew in the meantime") \
	X(DELIVER_UNFENCED, one_message, HOLDER, "a delivery is accepted whatever its token is") \
	X(DELIVER_BUSY, one_message, TWICE, "a delivery adds to what is left of another epoch") \
	X(DELIVER_RECALLED, one_node, HOLDER, "messages of a recalled unit are delivered") \
	X(RECALL_NOT_DURABLE, one_node, HOLDER, "a crash of the origin forgets that the unit was recalled") \
	X(RECALL_UNRESUMED, one_message, HOLDER, "after a loss, RECALL is sent before RESUME") \
	X(RECALL_ANY_EPOCH, two_nodes, HOLDER, "the answer to RECALL ends another epoch") \
	X(DRAINING_NOT_DURABLE, one_message, HOLDER, "a crash of the holder forgets that the unit is draining") \
	X(DRAINING_UNDONE, one_message, HOLDER, "a consumer that comes ends the draining") \
	X(RETURN_HELD, one_message, HOLDER, "a unit is returned that is not draining") \
	X(RETURN_TAKEN, one_message, TWICE, "a unit is returned while running transactions have taken messages") \
	X(RETURN_UNREPORTED, one_message, TWICE, "a unit is returned before everything is reported") \
	X(RETURN_ANY_EPOCH, one_message, HOLDER, "a return with an old epoch is executed") \
	X(FINISH_EARLY, one_message, LOST, "a message is reported before its dequeue has committed") \
	X(FINISH_UNANSWERED, one_message, TWICE, "finished copies are forgotten before the origin has answered") \
	X(FINISH_NOT_DURABLE, one_message, TWICE, "a crash of the origin forgets what it was told") \
	X(OLD_ROW_KEPT, no_origin, STUCK, "nothing ends the row of an old epoch, neither a new delivery nor a question to the origin") \
	X(BREAK_BLIND, one_message, STUCK, "a holder whose epoch is not current keeps its row") \
	X(ORIGIN_ANSWER_LATE, one_message, HOLDER, "the origin uses the answer to a request that was given up") \
	X(HOLDER_ANSWER_LATE, one_message, TWICE, "the holder uses the answer to a request that was given up")

#endif							/* AQ_LEASE_VARIANTS_H */
