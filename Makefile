# pgaq: built with PGXS.
#   make, make install      the extension
#   make TEST_POINTS=1      with named test points compiled in (tests only)
#   make WERROR=1           a warning of the compiler fails the build (./test build)
#   make ASSERTS=1          with assertions, also on a server built without (tests only)
#   make dist               the source as .tar.gz and as .zip for PGXN, below dist/source (of a tagged commit)
#   make NO_ACCOUNTING=1    without counters, times and traces (only to measure what they cost: bench/accounting)
# Tests are run by ./test, which knows all rungs.

EXTENSION = pgaq pgaq_oracle pgaq_lab
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" pgaq.control)
MODULE_big = pgaq
PARTS = base sync cache jobs queue shard classic jms move oracle notify schedule link propagate node monitor lab
OBJS = src/module.o $(patsubst %.c,%.o,$(sort $(foreach part,$(PARTS),$(wildcard src/$(part)/*.c src/$(part)/*/*.c))))

# from one version to the next, see tools/upgrade; tests/cluster/test_versions.py compares
DATA = $(wildcard sql/upgrade/*.sql)
DATA_built = sql/pgaq--$(EXTVERSION).sql sql/pgaq_oracle--$(EXTVERSION).sql sql/pgaq_lab--$(EXTVERSION).sql
# sql/pgaq/order and sql/oracle/order say of which files an extension's script is made
PGAQ_PARTS = $(addprefix sql/,$(shell cat sql/pgaq/order))
ORACLE_PARTS = $(addprefix sql/,$(shell cat sql/oracle/order))
# the headers that each object was made of: written by the compiler, read below
DEPENDENCIES = $(OBJS:.o=.d)
EXTRA_CLEAN = $(DATA_built) $(DEPENDENCIES) src/.flags src/.points

# libpq, for connections to other servers (src/link)
PG_CPPFLAGS = -I$(srcdir)/src -I$(libpq_srcdir) -MMD -MP
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-clobbered
ifdef WERROR
PG_CFLAGS += -Werror
endif
ifdef TEST_POINTS
PG_CPPFLAGS += -DAQ_TEST_POINTS
endif
ifdef NO_ACCOUNTING
PG_CPPFLAGS += -DAQ_NO_ACCOUNTING
endif
ifdef ASSERTS
PG_CPPFLAGS += -DUSE_ASSERT_CHECKING=1
endif

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)

# Calls and variables within the library need no detour by its tables of symbols: nobody
# replaces them.  From PostgreSQL 16 on this is so by itself.
PG_CFLAGS += -fno-semantic-interposition
ifeq ($(shell uname -s), Linux)
SHLIB_LINK += -Wl,-Bsymbolic
endif

SHLIB_LINK += $(libpq) $(PTHREAD_LIBS)

# no bitcode: nothing here is worth inlining into queries
override with_llvm = no
include $(PGXS)

src/base/version.o: override CPPFLAGS += -DAQ_VERSION='"$(EXTVERSION)"'
src/base/version.o: pgaq.control

# what a script begins with: psql does not run it, and it refuses a server on which it would not work
BEGIN = { printf '\\echo Use "$(1)" to load this file. \\quit\n'; sed 's/@EXTENSION@/$(2)/g; s/@VERSION@/$(EXTVERSION)/g' $(3); }

sql/pgaq--$(EXTVERSION).sql: sql/library_version.sql $(PGAQ_PARTS) sql/pgaq/order pgaq.control
	$(call BEGIN,CREATE EXTENSION pgaq,pgaq,$<) > $@
	cat $(PGAQ_PARTS) >> $@

sql/pgaq_oracle--$(EXTVERSION).sql: sql/pgaq_version.sql $(ORACLE_PARTS) sql/oracle/order pgaq_oracle.control
	$(call BEGIN,CREATE EXTENSION pgaq_oracle CASCADE,pgaq_oracle,$<) > $@
	cat $(ORACLE_PARTS) >> $@

sql/pgaq_lab--$(EXTVERSION).sql: sql/pgaq_version.sql sql/lab.sql pgaq_lab.control
	$(call BEGIN,CREATE EXTENSION pgaq_lab,pgaq_lab,$<) > $@
	cat sql/lab.sql >> $@

# a changed header: what includes it is built again, and an object whose headers are not known
KNOWN = $(wildcard $(DEPENDENCIES))
include $(KNOWN)
$(filter-out $(KNOWN:.d=.o), $(OBJS)): $(wildcard src/*/*.h src/*/*/*.h)

# What was compiled with other flags, or for another server, is compiled again; so it is when sys/sdt.h, with which static
# probes are compiled in, comes or goes.  A change of TEST_POINTS concerns only the files that have test points.
FLAGS := $(VERSION) $(CC) $(filter-out -Werror -DAQ_TEST_POINTS, $(CFLAGS) $(CPPFLAGS)) \
	$(if $(wildcard /usr/include/sys/sdt.h /usr/include/*/sys/sdt.h), with, without) probes
POINTS := test points: $(if $(TEST_POINTS),yes,no)
POINTED := $(patsubst %.c,%.o, $(shell grep -lwE 'aq_point|aq_point_held|AQ_TEST_POINTS' $(OBJS:.o=.c)))
$(OBJS): src/.flags
$(POINTED): src/.points
ifneq ($(file <src/.flags),$(FLAGS))
src/.flags: FORCE
endif
ifneq ($(file <src/.points),$(POINTS))
src/.points: FORCE
endif
src/.flags:
	@echo '$(subst ','\'',$(FLAGS))' >$@
src/.points:
	@echo '$(POINTS)' >$@
FORCE:
.PHONY: FORCE

install: $(DATA_built)

.PHONY: dist
dist:
	tools/release source
