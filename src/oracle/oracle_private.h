/*-------------------------------------------------------------------------
 *
 * oracle_private.h
 *	  Declarations shared by the files of part "oracle".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_ORACLE_PRIVATE_H
#define AQ_ORACLE_PRIVATE_H

#include "move/move.h"
#include "oracle/oracle.h"
#include "queue/calls.h"

/* --- caller_path.c: search_path of the packages' callers */
extern const char *aq_caller_path(void);
extern List *aq_caller_path_schemas(bool implicit);
extern void aq_caller_path_init(void);
extern int	aq_caller_path_use(void);
extern int	aq_caller_path_pin(void);
extern void aq_caller_path_leave(int nest);

/* --- names.c: names as Oracle's packages take and give them */
extern bool aq_names_parse(const char *string, char **schema, char **name);
extern char *aq_names_bare(char *string);
extern char *aq_names_native(const char *string, AqRight right);
extern char *aq_names_oracle_case(char *name, Oid collation);
extern char *aq_names_oracle(const char *native, Oid collation);

/* --- record.c: composite values by the names of their fields */
typedef struct AqField
{
	const char *name;
	Oid			type;			/* InvalidOid: any */
} AqField;

#define AQ_RECORD_FIELDS 16

typedef struct AqRecord
{
	const AqField *fields;
	int			nfields;
	/* of the type met last */
	uint64		identifier;		/* 0: none yet */
	int			attributes[AQ_RECORD_FIELDS];	/* where each field is */
} AqRecord;

extern void aq_record_read(AqRecord *record, Datum value, bool isnull, NullableDatum *fields);
extern Datum aq_record_make(AqRecord *record, Oid type, const NullableDatum *fields);
extern Oid	aq_record_field_type(AqRecord *record, Oid type, int field);
extern Oid	aq_record_element_type(Oid array);

/* --- transformation.c: users' functions from one payload type to another */
typedef struct AqTransformation AqTransformation;

extern char *aq_transformation_of_subscriber(const char *queue, const char *name, Oid role);
extern AqTransformation *aq_transformation_find(const char *name, const char *queue, Oid given, Oid wanted, bool literal,
												bool restricted);
extern Datum aq_transformation_apply(const AqTransformation *transformation, Datum payload, bool *isnull);
extern Datum aq_transformation_to_text(Oid type, Oid role, Datum payload, bool *isnull);
extern const AqMoveTransformer aq_transformation_mover;

/*
 * --- oracle_options.c
 *
 * The options of Oracle's packages, read and checked.
 */
typedef struct AqOraclePut
{
	AqEnqueue	call;
	Interval	delay;
	Interval	expiration;
	char	   *transformation; /* NULL: none */
	bool		immediate;
} AqOraclePut;

typedef struct AqOracleTake
{
	char	   *queue;			/* native name */
	char	   *consumer;		/* NULL: none */
	AqMode		mode;
	const char *navigation;
	text	   *correlation;
	text	   *condition;
	pg_uuid_t  *id;
	int64		timeout_us;		/* -1: no timeout */
	int			delivery;
	bool		immediate;
	char	   *transformation; /* NULL: none */
	bool		restricted;		/* it is the subscriber's */
} AqOracleTake;

/* An agent as it was given. */
typedef struct AqOracleAgent
{
	char	   *name;
	char	   *address;
	int			protocol;
	bool		has_protocol;
} AqOracleAgent;

typedef struct AqOracleListen
{
	int			n;
	char	  **queues;
	char	  **consumers;		/* elements may be NULL */
	AqOracleAgent *agents;
	int64		timeout_us;
	int			delivery;
} AqOracleListen;

extern char *aq_oracle_options_queue(const char *name, AqRight right);
extern void aq_oracle_options_put(const char *queue, NullableDatum options, NullableDatum properties, AqOraclePut *put);
extern bool aq_oracle_options_put_is_immediate(NullableDatum options);
extern void aq_oracle_options_take(const char *queue, NullableDatum options, AqOracleTake *take);
extern Datum aq_oracle_options_properties(Oid type, const AqMessage *message, int delivery);
extern void aq_oracle_options_listen(NullableDatum list, NullableDatum wait, NullableDatum mode, AqOracleListen *listen);
extern Datum aq_oracle_options_found_agent(const AqOracleListen *listen, int number, Oid type);

/* --- oracle_gone.c */
extern void aq_oracle_gone_init(void);

#endif							/* AQ_ORACLE_PRIVATE_H */
