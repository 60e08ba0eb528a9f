src/queue/definitions/recipient.o: src/queue/definitions/recipient.c \
 src/queue/definitions/definitions_private.h \
 src/queue/memory/memory_private.h src/queue/catalog/catalog_private.h \
 src/queue/queue.h src/cache/cache.h src/sync/sync.h \
 src/sync/common/atomics.h src/base/base.h \
 ../pg/usr/include/postgresql/15/server/postgres.h \
 ../pg/usr/include/postgresql/15/server/c.h \
 ../pg/usr/include/postgresql/15/server/postgres_ext.h \
 ../pg/usr/include/postgresql/15/server/pg_config_ext.h \
 ../pg/usr/include/postgresql/15/server/pg_config.h \
 ../pg/usr/include/postgresql/15/server/pg_config_manual.h \
 ../pg/usr/include/postgresql/15/server/pg_config_os.h \
 ../pg/usr/include/postgresql/15/server/port.h \
 ../pg/usr/include/postgresql/15/server/utils/elog.h \
 ../pg/usr/include/postgresql/15/server/utils/errcodes.h \
 ../pg/usr/include/postgresql/15/server/utils/palloc.h src/base/compat.h \
 ../pg/usr/include/postgresql/15/server/access/genam.h \
 ../pg/usr/include/postgresql/15/server/access/sdir.h \
 ../pg/usr/include/postgresql/15/server/access/skey.h \
 ../pg/usr/include/postgresql/15/server/access/attnum.h \
 ../pg/usr/include/postgresql/15/server/access/stratnum.h \
 ../pg/usr/include/postgresql/15/server/fmgr.h \
 ../pg/usr/include/postgresql/15/server/nodes/tidbitmap.h \
 ../pg/usr/include/postgresql/15/server/storage/itemptr.h \
 ../pg/usr/include/postgresql/15/server/storage/block.h \
 ../pg/usr/include/postgresql/15/server/storage/off.h \
 ../pg/usr/include/postgresql/15/server/storage/itemid.h \
 ../pg/usr/include/postgresql/15/server/utils/dsa.h \
 ../pg/usr/include/postgresql/15/server/port/atomics.h \
 ../pg/usr/include/postgresql/15/server/port/atomics/arch-x86.h \
 ../pg/usr/include/postgresql/15/server/port/atomics/generic-gcc.h \
 ../pg/usr/include/postgresql/15/server/port/atomics/fallback.h \
 ../pg/usr/include/postgresql/15/server/port/atomics/generic.h \
 ../pg/usr/include/postgresql/15/server/storage/dsm.h \
 ../pg/usr/include/postgresql/15/server/storage/dsm_impl.h \
 ../pg/usr/include/postgresql/15/server/storage/lockdefs.h \
 ../pg/usr/include/postgresql/15/server/utils/relcache.h \
 ../pg/usr/include/postgresql/15/server/access/tupdesc.h \
 ../pg/usr/include/postgresql/15/server/access/xlogdefs.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_attribute.h \
 ../pg/usr/include/postgresql/15/server/catalog/genbki.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_attribute_d.h \
 ../pg/usr/include/postgresql/15/server/nodes/pg_list.h \
 ../pg/usr/include/postgresql/15/server/nodes/nodes.h \
 ../pg/usr/include/postgresql/15/server/nodes/bitmapset.h \
 ../pg/usr/include/postgresql/15/server/utils/snapshot.h \
 ../pg/usr/include/postgresql/15/server/access/htup.h \
 ../pg/usr/include/postgresql/15/server/datatype/timestamp.h \
 ../pg/usr/include/postgresql/15/server/lib/pairingheap.h \
 ../pg/usr/include/postgresql/15/server/lib/stringinfo.h \
 ../pg/usr/include/postgresql/15/server/storage/buf.h \
 ../pg/usr/include/postgresql/15/server/access/tableam.h \
 ../pg/usr/include/postgresql/15/server/access/relscan.h \
 ../pg/usr/include/postgresql/15/server/access/htup_details.h \
 ../pg/usr/include/postgresql/15/server/access/transam.h \
 ../pg/usr/include/postgresql/15/server/access/tupmacs.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_type_d.h \
 ../pg/usr/include/postgresql/15/server/common/int.h \
 ../pg/usr/include/postgresql/15/server/storage/bufpage.h \
 ../pg/usr/include/postgresql/15/server/storage/item.h \
 ../pg/usr/include/postgresql/15/server/access/itup.h \
 ../pg/usr/include/postgresql/15/server/storage/spin.h \
 ../pg/usr/include/postgresql/15/server/storage/s_lock.h \
 ../pg/usr/include/postgresql/15/server/access/xact.h \
 ../pg/usr/include/postgresql/15/server/access/xlogreader.h \
 ../pg/usr/include/postgresql/15/server/access/xlogrecord.h \
 ../pg/usr/include/postgresql/15/server/access/rmgr.h \
 ../pg/usr/include/postgresql/15/server/access/rmgrlist.h \
 ../pg/usr/include/postgresql/15/server/port/pg_crc32c.h \
 ../pg/usr/include/postgresql/15/server/port/pg_bswap.h \
 ../pg/usr/include/postgresql/15/server/storage/relfilenode.h \
 ../pg/usr/include/postgresql/15/server/common/relpath.h \
 ../pg/usr/include/postgresql/15/server/catalog/catversion.h \
 ../pg/usr/include/postgresql/15/server/storage/backendid.h \
 ../pg/usr/include/postgresql/15/server/storage/sinval.h \
 ../pg/usr/include/postgresql/15/server/utils/guc.h \
 ../pg/usr/include/postgresql/15/server/nodes/parsenodes.h \
 ../pg/usr/include/postgresql/15/server/nodes/lockoptions.h \
 ../pg/usr/include/postgresql/15/server/nodes/primnodes.h \
 ../pg/usr/include/postgresql/15/server/nodes/value.h \
 ../pg/usr/include/postgresql/15/server/partitioning/partdefs.h \
 ../pg/usr/include/postgresql/15/server/tcop/dest.h \
 ../pg/usr/include/postgresql/15/server/executor/tuptable.h \
 ../pg/usr/include/postgresql/15/server/access/sysattr.h \
 ../pg/usr/include/postgresql/15/server/tcop/cmdtag.h \
 ../pg/usr/include/postgresql/15/server/tcop/cmdtaglist.h \
 ../pg/usr/include/postgresql/15/server/utils/array.h \
 ../pg/usr/include/postgresql/15/server/utils/expandeddatum.h \
 ../pg/usr/include/postgresql/15/server/utils/rel.h \
 ../pg/usr/include/postgresql/15/server/access/xlog.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_class.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_class_d.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_index.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_index_d.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_publication.h \
 ../pg/usr/include/postgresql/15/server/catalog/objectaddress.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_publication_d.h \
 ../pg/usr/include/postgresql/15/server/rewrite/prs2lock.h \
 ../pg/usr/include/postgresql/15/server/storage/smgr.h \
 ../pg/usr/include/postgresql/15/server/lib/ilist.h \
 ../pg/usr/include/postgresql/15/server/utils/reltrigger.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_database.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_database_d.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_foreign_server.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_foreign_server_d.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_namespace.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_namespace_d.h \
 ../pg/usr/include/postgresql/15/server/utils/acl.h \
 ../pg/usr/include/postgresql/15/server/parser/parse_node.h \
 ../pg/usr/include/postgresql/15/server/utils/queryenvironment.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_proc.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_proc_d.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_tablespace.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_tablespace_d.h \
 ../pg/usr/include/postgresql/15/server/catalog/pg_type.h \
 ../pg/usr/include/postgresql/15/server/libpq/pqformat.h \
 ../pg/usr/include/postgresql/15/server/mb/pg_wchar.h \
 ../pg/usr/include/postgresql/15/server/miscadmin.h \
 ../pg/usr/include/postgresql/15/server/datatype/timestamp.h \
 ../pg/usr/include/postgresql/15/server/pgtime.h \
 ../pg/usr/include/postgresql/15/server/storage/latch.h \
 ../pg/usr/include/postgresql/15/server/storage/lmgr.h \
 ../pg/usr/include/postgresql/15/server/storage/lock.h \
 ../pg/usr/include/postgresql/15/server/storage/lwlock.h \
 ../pg/usr/include/postgresql/15/server/storage/proclist_types.h \
 ../pg/usr/include/postgresql/15/server/storage/lwlocknames.h \
 ../pg/usr/include/postgresql/15/server/storage/shmem.h \
 ../pg/usr/include/postgresql/15/server/utils/hsearch.h \
 ../pg/usr/include/postgresql/15/server/utils/timestamp.h \
 ../pg/usr/include/postgresql/15/server/pgtime.h \
 ../pg/usr/include/postgresql/15/server/storage/proc.h \
 ../pg/usr/include/postgresql/15/server/access/clog.h \
 ../pg/usr/include/postgresql/15/server/storage/sync.h \
 ../pg/usr/include/postgresql/15/server/storage/pg_sema.h \
 ../pg/usr/include/postgresql/15/server/utils/memutils.h \
 ../pg/usr/include/postgresql/15/server/nodes/memnodes.h \
 ../pg/usr/include/postgresql/15/server/utils/syscache.h \
 ../pg/usr/include/postgresql/15/server/utils/wait_event.h \
 src/base/finding.h src/base/rows.h src/base/xact.h \
 src/base/errors_list.h src/sync/common/latch_types.h \
 src/sync/common/lists.h src/sync/common/latch_list.h \
 src/sync/common/mutex_list.h src/sync/common/location_list.h \
 src/sync/common/class_list.h src/sync/common/event_list.h \
 src/sync/control/control.h src/sync/latches/latch.h \
 src/sync/mutexes/mutex.h src/sync/traces/trace.h \
 src/sync/common/probes.h src/sync/traces/trace_list.h \
 src/sync/waits/event.h src/sync/waits/wakeup.h \
 src/sync/control/deadlock.h src/sync/statistics/server_stat.h \
 src/sync/statistics/stat.h src/sync/statistics/stat_list.h \
 src/sync/statistics/time_list.h src/sync/waits/cond.h \
 ../pg/usr/include/postgresql/15/server/storage/condition_variable.h \
 src/cache/row_cache_list.h src/jobs/jobs.h \
 ../pg/usr/include/postgresql/15/server/utils/uuid.h \
 src/queue/memory/traffic_list.h src/queue/memory/share_list.h \
 src/queue/store.h ../pg/usr/include/postgresql/15/server/nodes/params.h
src/queue/definitions/definitions_private.h:
src/queue/memory/memory_private.h:
src/queue/catalog/catalog_private.h:
src/queue/queue.h:
src/cache/cache.h:
src/sync/sync.h:
src/sync/common/atomics.h:
src/base/base.h:
../pg/usr/include/postgresql/15/server/postgres.h:
../pg/usr/include/postgresql/15/server/c.h:
../pg/usr/include/postgresql/15/server/postgres_ext.h:
../pg/usr/include/postgresql/15/server/pg_config_ext.h:
../pg/usr/include/postgresql/15/server/pg_config.h:
../pg/usr/include/postgresql/15/server/pg_config_manual.h:
../pg/usr/include/postgresql/15/server/pg_config_os.h:
../pg/usr/include/postgresql/15/server/port.h:
../pg/usr/include/postgresql/15/server/utils/elog.h:
../pg/usr/include/postgresql/15/server/utils/errcodes.h:
../pg/usr/include/postgresql/15/server/utils/palloc.h:
src/base/compat.h:
../pg/usr/include/postgresql/15/server/access/genam.h:
../pg/usr/include/postgresql/15/server/access/sdir.h:
../pg/usr/include/postgresql/15/server/access/skey.h:
../pg/usr/include/postgresql/15/server/access/attnum.h:
../pg/usr/include/postgresql/15/server/access/stratnum.h:
../pg/usr/include/postgresql/15/server/fmgr.h:
../pg/usr/include/postgresql/15/server/nodes/tidbitmap.h:
../pg/usr/include/postgresql/15/server/storage/itemptr.h:
../pg/usr/include/postgresql/15/server/storage/block.h:
../pg/usr/include/postgresql/15/server/storage/off.h:
../pg/usr/include/postgresql/15/server/storage/itemid.h:
../pg/usr/include/postgresql/15/server/utils/dsa.h:
../pg/usr/include/postgresql/15/server/port/atomics.h:
../pg/usr/include/postgresql/15/server/port/atomics/arch-x86.h:
../pg/usr/include/postgresql/15/server/port/atomics/generic-gcc.h:
../pg/usr/include/postgresql/15/server/port/atomics/fallback.h:
../pg/usr/include/postgresql/15/server/port/atomics/generic.h:
../pg/usr/include/postgresql/15/server/storage/dsm.h:
../pg/usr/include/postgresql/15/server/storage/dsm_impl.h:
../pg/usr/include/postgresql/15/server/storage/lockdefs.h:
../pg/usr/include/postgresql/15/server/utils/relcache.h:
../pg/usr/include/postgresql/15/server/access/tupdesc.h:
../pg/usr/include/postgresql/15/server/access/xlogdefs.h:
../pg/usr/include/postgresql/15/server/catalog/pg_attribute.h:
../pg/usr/include/postgresql/15/server/catalog/genbki.h:
../pg/usr/include/postgresql/15/server/catalog/pg_attribute_d.h:
../pg/usr/include/postgresql/15/server/nodes/pg_list.h:
../pg/usr/include/postgresql/15/server/nodes/nodes.h:
../pg/usr/include/postgresql/15/server/nodes/bitmapset.h:
../pg/usr/include/postgresql/15/server/utils/snapshot.h:
../pg/usr/include/postgresql/15/server/access/htup.h:
../pg/usr/include/postgresql/15/server/datatype/timestamp.h:
../pg/usr/include/postgresql/15/server/lib/pairingheap.h:
../pg/usr/include/postgresql/15/server/lib/stringinfo.h:
../pg/usr/include/postgresql/15/server/storage/buf.h:
../pg/usr/include/postgresql/15/server/access/tableam.h:
../pg/usr/include/postgresql/15/server/access/relscan.h:
../pg/usr/include/postgresql/15/server/access/htup_details.h:
../pg/usr/include/postgresql/15/server/access/transam.h:
../pg/usr/include/postgresql/15/server/access/tupmacs.h:
../pg/usr/include/postgresql/15/server/catalog/pg_type_d.h:
../pg/usr/include/postgresql/15/server/common/int.h:
../pg/usr/include/postgresql/15/server/storage/bufpage.h:
../pg/usr/include/postgresql/15/server/storage/item.h:
../pg/usr/include/postgresql/15/server/access/itup.h:
../pg/usr/include/postgresql/15/server/storage/spin.h:
../pg/usr/include/postgresql/15/server/storage/s_lock.h:
../pg/usr/include/postgresql/15/server/access/xact.h:
../pg/usr/include/postgresql/15/server/access/xlogreader.h:
../pg/usr/include/postgresql/15/server/access/xlogrecord.h:
../pg/usr/include/postgresql/15/server/access/rmgr.h:
../pg/usr/include/postgresql/15/server/access/rmgrlist.h:
../pg/usr/include/postgresql/15/server/port/pg_crc32c.h:
../pg/usr/include/postgresql/15/server/port/pg_bswap.h:
../pg/usr/include/postgresql/15/server/storage/relfilenode.h:
../pg/usr/include/postgresql/15/server/common/relpath.h:
../pg/usr/include/postgresql/15/server/catalog/catversion.h:
../pg/usr/include/postgresql/15/server/storage/backendid.h:
../pg/usr/include/postgresql/15/server/storage/sinval.h:
../pg/usr/include/postgresql/15/server/utils/guc.h:
../pg/usr/include/postgresql/15/server/nodes/parsenodes.h:
../pg/usr/include/postgresql/15/server/nodes/lockoptions.h:
../pg/usr/include/postgresql/15/server/nodes/primnodes.h:
../pg/usr/include/postgresql/15/server/nodes/value.h:
../pg/usr/include/postgresql/15/server/partitioning/partdefs.h:
../pg/usr/include/postgresql/15/server/tcop/dest.h:
../pg/usr/include/postgresql/15/server/executor/tuptable.h:
../pg/usr/include/postgresql/15/server/access/sysattr.h:
../pg/usr/include/postgresql/15/server/tcop/cmdtag.h:
../pg/usr/include/postgresql/15/server/tcop/cmdtaglist.h:
../pg/usr/include/postgresql/15/server/utils/array.h:
../pg/usr/include/postgresql/15/server/utils/expandeddatum.h:
../pg/usr/include/postgresql/15/server/utils/rel.h:
../pg/usr/include/postgresql/15/server/access/xlog.h:
../pg/usr/include/postgresql/15/server/catalog/pg_class.h:
../pg/usr/include/postgresql/15/server/catalog/pg_class_d.h:
../pg/usr/include/postgresql/15/server/catalog/pg_index.h:
../pg/usr/include/postgresql/15/server/catalog/pg_index_d.h:
../pg/usr/include/postgresql/15/server/catalog/pg_publication.h:
../pg/usr/include/postgresql/15/server/catalog/objectaddress.h:
../pg/usr/include/postgresql/15/server/catalog/pg_publication_d.h:
../pg/usr/include/postgresql/15/server/rewrite/prs2lock.h:
../pg/usr/include/postgresql/15/server/storage/smgr.h:
../pg/usr/include/postgresql/15/server/lib/ilist.h:
../pg/usr/include/postgresql/15/server/utils/reltrigger.h:
../pg/usr/include/postgresql/15/server/catalog/pg_database.h:
../pg/usr/include/postgresql/15/server/catalog/pg_database_d.h:
../pg/usr/include/postgresql/15/server/catalog/pg_foreign_server.h:
../pg/usr/include/postgresql/15/server/catalog/pg_foreign_server_d.h:
../pg/usr/include/postgresql/15/server/catalog/pg_namespace.h:
../pg/usr/include/postgresql/15/server/catalog/pg_namespace_d.h:
../pg/usr/include/postgresql/15/server/utils/acl.h:
../pg/usr/include/postgresql/15/server/parser/parse_node.h:
../pg/usr/include/postgresql/15/server/utils/queryenvironment.h:
../pg/usr/include/postgresql/15/server/catalog/pg_proc.h:
../pg/usr/include/postgresql/15/server/catalog/pg_proc_d.h:
../pg/usr/include/postgresql/15/server/catalog/pg_tablespace.h:
../pg/usr/include/postgresql/15/server/catalog/pg_tablespace_d.h:
../pg/usr/include/postgresql/15/server/catalog/pg_type.h:
../pg/usr/include/postgresql/15/server/libpq/pqformat.h:
../pg/usr/include/postgresql/15/server/mb/pg_wchar.h:
../pg/usr/include/postgresql/15/server/miscadmin.h:
../pg/usr/include/postgresql/15/server/datatype/timestamp.h:
../pg/usr/include/postgresql/15/server/pgtime.h:
../pg/usr/include/postgresql/15/server/storage/latch.h:
../pg/usr/include/postgresql/15/server/storage/lmgr.h:
../pg/usr/include/postgresql/15/server/storage/lock.h:
../pg/usr/include/postgresql/15/server/storage/lwlock.h:
../pg/usr/include/postgresql/15/server/storage/proclist_types.h:
../pg/usr/include/postgresql/15/server/storage/lwlocknames.h:
../pg/usr/include/postgresql/15/server/storage/shmem.h:
../pg/usr/include/postgresql/15/server/utils/hsearch.h:
../pg/usr/include/postgresql/15/server/utils/timestamp.h:
../pg/usr/include/postgresql/15/server/pgtime.h:
../pg/usr/include/postgresql/15/server/storage/proc.h:
../pg/usr/include/postgresql/15/server/access/clog.h:
../pg/usr/include/postgresql/15/server/storage/sync.h:
../pg/usr/include/postgresql/15/server/storage/pg_sema.h:
../pg/usr/include/postgresql/15/server/utils/memutils.h:
../pg/usr/include/postgresql/15/server/nodes/memnodes.h:
../pg/usr/include/postgresql/15/server/utils/syscache.h:
../pg/usr/include/postgresql/15/server/utils/wait_event.h:
src/base/finding.h:
src/base/rows.h:
src/base/xact.h:
src/base/errors_list.h:
src/sync/common/latch_types.h:
src/sync/common/lists.h:
src/sync/common/latch_list.h:
src/sync/common/mutex_list.h:
src/sync/common/location_list.h:
src/sync/common/class_list.h:
src/sync/common/event_list.h:
src/sync/control/control.h:
src/sync/latches/latch.h:
src/sync/mutexes/mutex.h:
src/sync/traces/trace.h:
src/sync/common/probes.h:
src/sync/traces/trace_list.h:
src/sync/waits/event.h:
src/sync/waits/wakeup.h:
src/sync/control/deadlock.h:
src/sync/statistics/server_stat.h:
src/sync/statistics/stat.h:
src/sync/statistics/stat_list.h:
src/sync/statistics/time_list.h:
src/sync/waits/cond.h:
../pg/usr/include/postgresql/15/server/storage/condition_variable.h:
src/cache/row_cache_list.h:
src/jobs/jobs.h:
../pg/usr/include/postgresql/15/server/utils/uuid.h:
src/queue/memory/traffic_list.h:
src/queue/memory/share_list.h:
src/queue/store.h:
../pg/usr/include/postgresql/15/server/nodes/params.h:
