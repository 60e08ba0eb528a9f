/*-------------------------------------------------------------------------
 *
 * setting_list.h
 *	  Settings that change the meaning of an expression or the form of its
 *	  errors, besides search_path.
 *
 * run_as.c sets them for code that runs in other roles' sessions; autonomous.c
 * passes them to the session's helper.
 *
 *	  X(id, name, value in code that runs for others, C expression: is that the
 *		value now, does the setting change how a text is read)
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
X(DATESTYLE, "DateStyle", "ISO, MDY", DateStyle == USE_ISO_DATES && DateOrder == DATEORDER_MDY, true)
X(INTERVALSTYLE, "IntervalStyle", "postgres", IntervalStyle == INTSTYLE_POSTGRES, true)
X(TIMEZONE, "TimeZone", "UTC", strcmp(pg_get_timezone_name(session_timezone), "UTC") == 0, true)
X(ABBREVIATIONS, "timezone_abbreviations", "Default",
  strcmp(GetConfigOption("timezone_abbreviations", false, false), "Default") == 0, true)
X(ARRAY_NULLS, "array_nulls", "on", Array_nulls, true)
X(XMLOPTION, "xmloption", "content", xmloption == XMLOPTION_CONTENT, true)
X(LC_MONETARY, "lc_monetary", "C", strcmp(locale_monetary, "C") == 0, true)
X(LC_NUMERIC, "lc_numeric", "C", strcmp(locale_numeric, "C") == 0, false)
X(LC_TIME, "lc_time", "C", strcmp(locale_time, "C") == 0, false)
X(QUOTE_IDENTIFIERS, "quote_all_identifiers", "off", !quote_all_identifiers, false)		/* before the next one, which
																						 * depends on it */
X(TEXT_SEARCH, "default_text_search_config", "pg_catalog.simple", strcmp(TSCurrentConfig, "pg_catalog.simple") == 0, false)
X(EXTRA_FLOAT_DIGITS, "extra_float_digits", "1", extra_float_digits == 1, false)
X(BYTEA_OUTPUT, "bytea_output", "hex", bytea_output == BYTEA_OUTPUT_HEX, false)
X(XMLBINARY, "xmlbinary", "base64", xmlbinary == XMLBINARY_BASE64, false)
X(STRINGS, "standard_conforming_strings", "on", AQ_STANDARD_STRINGS, false)
X(BACKSLASH_QUOTE, "backslash_quote", "safe_encoding", backslash_quote == BACKSLASH_QUOTE_SAFE_ENCODING, false)
X(NULL_EQUALS, "transform_null_equals", "off", !Transform_null_equals, false)
X(FUZZY_SEARCH, "gin_fuzzy_search_limit", "0", GinFuzzySearchLimit == 0, false)
X(ROW_SECURITY, "row_security", "on", row_security, false)
X(ORACLE_ERRORS, "pgaq.oracle_errors", "off", !aq_error_oracle, false)
