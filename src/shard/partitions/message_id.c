/*-------------------------------------------------------------------------
 *
 * message_id.c
 *	  Message ids: UUIDs of version 8 with the queue's key (60 bits), the
 *	  stream's number (10 bits) and the ordinal (52 bits).
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/partitions/partitions_private.h"

#include "port/pg_bswap.h"

#define ORDINAL_BITS 50
#define STREAM_MASK 0xFFF

pg_uuid_t
aq_message_id(uint64 key, int stream, int64 ordinal)
{
	pg_uuid_t	id;
	uint64		high = (key >> 12 << 16) | UINT64CONST(0x8000) | (key & 0xFFF);
	uint64		low = UINT64CONST(0x8000000000000000) |
		((uint64) stream << ORDINAL_BITS) | (uint64) ordinal;

	high = pg_hton64(high);
	low = pg_hton64(low);
	memcpy(id.data, &high, sizeof(high));
	memcpy(id.data + sizeof(high), &low, sizeof(low));
	return id;
}

/* Returns false if the id is not from this queue. */
bool
aq_message_id_parse(const pg_uuid_t *id, uint64 key, int *stream, int64 *ordinal)
{
	uint64		high,
				low;

	memcpy(&high, id->data, sizeof(high));
	memcpy(&low, id->data + sizeof(high), sizeof(low));
	high = pg_ntoh64(high);
	low = pg_ntoh64(low);
	*stream = low >> ORDINAL_BITS & STREAM_MASK;
	*ordinal = low & ((UINT64CONST(1) << ORDINAL_BITS) - 1);
	return (high >> 16 << 12 | (high & 0xFFF)) == key && (high & 0xF000) == 0x8000 &&
		low >> 62 == 2;
}

bool
aq_message_id_owned(AqQueue *queue, const pg_uuid_t *id)
{
	int			stream;
	int64		ordinal;

	return aq_message_id_parse(id, queue->shard_key, &stream, &ordinal);
}
