/*
 * property_list.h
 *	  Properties of the database: X(name, what it is, value unless another is set).
 *
 * NULL: computed from the database, see property.c.  Names and meanings are
 * Oracle's; the order is that of the views.  No guard: it is included more
 * than once.
 */
X(DBTIMEZONE, "time zone of the database", NULL)
X(DEFAULT_EDITION, "name of the database's default edition", "ORA$BASE")
X(DEFAULT_PERMANENT_TABLESPACE, "name of the default permanent tablespace", NULL)
X(DEFAULT_TBS_TYPE, "type of the default tablespace", "SMALLFILE")
X(EXPORT_VIEWS_VERSION, "export views revision number", "8")
X(GLOBAL_DB_NAME, "global database name", NULL)
X(NLS_CALENDAR, "calendar system", "GREGORIAN")
X(NLS_CHARACTERSET, "character set", NULL)
X(NLS_COMP, "NLS comparison", "BINARY")
X(NLS_CURRENCY, "local currency", "$")
X(NLS_DATE_FORMAT, "date format", "DD-MON-RR")
X(NLS_DATE_LANGUAGE, "date language", "AMERICAN")
X(NLS_DUAL_CURRENCY, "dual currency symbol", "$")
X(NLS_ISO_CURRENCY, "ISO currency", "AMERICA")
X(NLS_LANGUAGE, "language", "AMERICAN")
X(NLS_LENGTH_SEMANTICS, "NLS length semantics", "CHAR")
X(NLS_NCHAR_CHARACTERSET, "NCHAR character set", NULL)
X(NLS_NCHAR_CONV_EXCP, "NLS conversion exception", "FALSE")
X(NLS_NUMERIC_CHARACTERS, "numeric characters", ".,")
X(NLS_RDBMS_VERSION, "RDBMS version for NLS parameters", NULL)
X(NLS_SORT, "linguistic definition", "BINARY")
X(NLS_TERRITORY, "territory", "AMERICA")
X(NLS_TIMESTAMP_FORMAT, "time stamp format", "DD-MON-RR HH.MI.SSXFF AM")
X(NLS_TIMESTAMP_TZ_FORMAT, "timestamp with timezone format", "DD-MON-RR HH.MI.SSXFF AM TZR")
X(NLS_TIME_FORMAT, "time format", "HH.MI.SSXFF AM")
X(NLS_TIME_TZ_FORMAT, "time with timezone format", "HH.MI.SSXFF AM TZR")
