# pgaq: built with PGXS.
#   make, make install      the extension
#   make TEST_POINTS=1      with named test points compiled in (tests only)
#   make ASSERTS=1          with assertions, also on a server built without (tests only)
# Tests are run by ./test, which knows all rungs.

EXTENSION = pgaq
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" pgaq.control)
MODULE_big = pgaq
PARTS = base sync cache jobs queue shard classic
OBJS = src/module.o $(patsubst %.c,%.o,$(sort $(foreach part,$(PARTS),$(wildcard src/$(part)/*.c))))

DATA_built = sql/pgaq--$(EXTVERSION).sql
SQL_PARTS = $(shell cat sql/order)
EXTRA_CLEAN = sql/pgaq--$(EXTVERSION).sql

PG_CPPFLAGS = -I$(srcdir)/src
PG_CFLAGS = -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-clobbered -Werror
ifdef TEST_POINTS
PG_CPPFLAGS += -DAQ_TEST_POINTS
endif
ifdef ASSERTS
PG_CPPFLAGS += -DUSE_ASSERT_CHECKING=1
endif

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)

# no bitcode: nothing here is worth inlining into queries
override with_llvm = no
include $(PGXS)

sql/pgaq--$(EXTVERSION).sql: $(addprefix sql/,$(SQL_PARTS)) sql/order pgaq.control
	printf '%s\n' '\echo Use "CREATE EXTENSION pgaq" to load this file. \quit' > $@
	cat $(addprefix sql/,$(SQL_PARTS)) >> $@

# headers: rebuild everything when one changes
$(OBJS): $(wildcard src/*/*.h)

install: sql/pgaq--$(EXTVERSION).sql
