src/sync/common/lock_names.o: src/sync/common/lock_names.c \
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
 ../pg/usr/include/postgresql/15/server/utils/palloc.h \
 src/sync/common/lock_names.h src/sync/common/lists.h \
 src/sync/common/latch_list.h src/sync/common/mutex_list.h \
 src/sync/common/location_list.h src/sync/common/class_list.h \
 src/sync/common/event_list.h
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
src/sync/common/lock_names.h:
src/sync/common/lists.h:
src/sync/common/latch_list.h:
src/sync/common/mutex_list.h:
src/sync/common/location_list.h:
src/sync/common/class_list.h:
src/sync/common/event_list.h:
