"""What the catalog says of an extension's members, in a form without OIDs: to compare an installed extension with an updated one, and to write what an
upgrade script lacks.

A member is a dictionary of its aspects: its definition, comments, owner, rights, dependencies, and whether its rows are dumped. Aspects that are
statements make it what it is: `tools/upgrade` writes them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pgaq import db

# Each member: its kind and name in SQL, whose order is that of their creation.
MEMBERS = """
    CREATE TEMPORARY TABLE member ON COMMIT DROP AS
    SELECT d.classid, d.objid, i.type AS kind, i.identity, i.type || ' ' || i.identity AS name, d.objid::bigint AS number,
        CASE d.classid WHEN 'pg_proc'::regclass THEN 'ROUTINE ' WHEN 'pg_class'::regclass THEN CASE i.type WHEN 'sequence' THEN 'SEQUENCE ' ELSE 'TABLE ' END
            ELSE upper(i.type) || ' ' END || i.identity AS object,
        p.*, u.usual, coalesce(p.acl, u.usual) AS rights, coalesce(n.initprivs, u.usual) AS initial
    FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
        CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) i
        CROSS JOIN LATERAL (SELECT proowner, proacl, 'f'::"char" FROM pg_proc WHERE d.classid = 'pg_proc'::regclass AND oid = d.objid
            UNION ALL SELECT relowner, relacl, CASE relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END FROM pg_class WHERE d.classid = 'pg_class'::regclass AND oid = d.objid
            UNION ALL SELECT typowner, typacl, 'T' FROM pg_type WHERE d.classid = 'pg_type'::regclass AND oid = d.objid
            UNION ALL SELECT nspowner, nspacl, 'n' FROM pg_namespace WHERE d.classid = 'pg_namespace'::regclass AND oid = d.objid
            UNION ALL SELECT fdwowner, fdwacl, 'F' FROM pg_foreign_data_wrapper WHERE d.classid = 'pg_foreign_data_wrapper'::regclass AND oid = d.objid
            UNION ALL SELECT 10, NULL, 'r' WHERE d.classid = 'pg_cast'::regclass) p(owner, acl, letter)
        CROSS JOIN LATERAL acldefault(p.letter, p.owner) u(usual)
        LEFT JOIN pg_init_privs n ON n.classoid = d.classid AND n.objoid = d.objid AND n.objsubid = 0
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = '{extension}'"""

# Aspects: name of the member, of the aspect, and what it is. A view's are statements but for its columns.
ASPECTS = {
    "routines": """
        SELECT name, 'definition', replace(pg_get_functiondef(objid), E'\\n AS ''pgaq'', $', E'\\n AS ''MODULE_PATHNAME'', $') FROM member WHERE classid = 'pg_proc'::regclass""",
    "signatures": """
        SELECT m.name, 'signature', format('%s %s (%s) with %s defaults', p.prokind, pg_get_function_result(p.oid), pg_get_function_identity_arguments(p.oid), p.pronargdefaults) FROM member m JOIN pg_proc p ON p.oid = objid
        WHERE classid = 'pg_proc'::regclass""",
    "views": """
        SELECT m.name, 'definition', format('CREATE OR REPLACE VIEW %s%s AS%s%s', identity, ' WITH (' || array_to_string(c.reloptions, ', ') || ')', E'\\n', pg_get_viewdef(c.oid))
        FROM member m JOIN pg_class c ON c.oid = objid WHERE classid = 'pg_class'::regclass AND relkind = 'v'""",
    "columns": """
        SELECT name, 'columns', (SELECT string_agg(concat_ws(' ', row_number, attname, type, collated, attnotnull, attstorage, attstattarget, initial), E'\\n' ORDER BY row_number) FROM (
            SELECT row_number() OVER (ORDER BY a.attnum), a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull, a.attstorage, a.attstattarget,
                nullif(a.attcollation, 0)::regcollation AS collated, pg_get_expr(f.adbin, f.adrelid) AS initial
            FROM pg_attribute a LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum WHERE a.attrelid = r.relid AND a.attnum > 0 AND NOT a.attisdropped) l)
        FROM member m CROSS JOIN LATERAL (SELECT objid WHERE classid = 'pg_class'::regclass UNION ALL SELECT typrelid FROM pg_type WHERE classid = 'pg_type'::regclass AND oid = objid AND typrelid <> 0) r(relid)""",
    "tables": """
        SELECT m.name, 'definition', concat_ws(E'\\n', c.relkind, c.relpersistence, c.relreplident, c.reloptions::text,
            (SELECT string_agg(conname || ' ' || pg_get_constraintdef(o.oid), E'\\n' ORDER BY conname) FROM pg_constraint o WHERE o.conrelid = c.oid),
            (SELECT string_agg(pg_get_indexdef(x.indexrelid), E'\\n' ORDER BY x.indexrelid::regclass::text) FROM pg_index x WHERE x.indrelid = c.oid),
            (SELECT string_agg(pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text, E'\\n' ORDER BY t.tgname) FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),
            (SELECT concat_ws(' ', format_type(q.seqtypid, NULL), q.seqstart, q.seqincrement, q.seqmax, q.seqmin, q.seqcache, q.seqcycle) FROM pg_sequence q WHERE q.seqrelid = c.oid))
        FROM member m JOIN pg_class c ON c.oid = objid WHERE classid = 'pg_class'::regclass AND relkind <> 'v'""",
    "types": """
        SELECT m.name, 'definition', concat_ws(' ', y.typtype, format_type(y.typbasetype, y.typtypmod), y.typnotnull, y.typdefault, y.typlen, y.typbyval, y.typalign, y.typstorage,
            y.typinput, y.typoutput, y.typreceive, y.typsend, y.typcategory, y.typispreferred,
            (SELECT string_agg(conname || ' ' || pg_get_constraintdef(o.oid), ' ' ORDER BY conname) FROM pg_constraint o WHERE o.contypid = y.oid),
            (SELECT string_agg(enumlabel, ' ' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = y.oid))
        FROM member m JOIN pg_type y ON y.oid = objid WHERE classid = 'pg_type'::regclass""",
    "schemas": "SELECT name, 'definition', 'CREATE SCHEMA ' || identity FROM member WHERE classid = 'pg_namespace'::regclass",
    "others": """
        SELECT name, 'definition', concat_ws(' ', c.castfunc::regproc, c.castcontext, c.castmethod, f.fdwhandler::regproc, f.fdwvalidator::regproc, f.fdwoptions)
        FROM member LEFT JOIN pg_cast c ON classid = 'pg_cast'::regclass AND c.oid = objid LEFT JOIN pg_foreign_data_wrapper f ON classid = 'pg_foreign_data_wrapper'::regclass AND f.oid = objid
        WHERE classid NOT IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass, 'pg_namespace'::regclass)""",
    "comments": """
        SELECT m.name, 'comment' || coalesce(' of column ' || a.attname, ''), format('COMMENT ON %s IS %L', CASE WHEN a.attname IS NULL THEN upper(m.kind) || ' ' || m.identity
            ELSE 'COLUMN ' || m.identity || '.' || quote_ident(a.attname) END, d.description)
        FROM member m JOIN pg_description d ON d.classoid = m.classid AND d.objoid = m.objid
            LEFT JOIN pg_attribute a ON d.objsubid > 0 AND a.attrelid = d.objoid AND a.attnum = d.objsubid""",
    "owners": "SELECT name, 'owner', format('ALTER %s OWNER TO %s', object, CASE WHEN owner = extowner THEN 'CURRENT_USER' ELSE owner::regrole::text END) FROM member, extension WHERE kind <> 'cast'",
    "rights": """
        SELECT name, 'rights', concat_ws('; ', (SELECT string_agg(format('GRANT %s ON %s TO %s', privileges, object, grantee), '; ' ORDER BY grantee) FROM (
            SELECT string_agg(privilege_type, ', ' ORDER BY privilege_type) AS privileges,
                CASE grantee WHEN 0 THEN 'PUBLIC' WHEN extowner THEN 'CURRENT_USER' ELSE grantee::regrole::text END || CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS grantee
            FROM aclexplode(rights) GROUP BY grantee, is_grantable) g))
        FROM member, extension WHERE kind <> 'cast' AND NOT (rights @> usual AND usual @> rights)""",
    "initial rights": """
        SELECT name, 'initial rights', (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(initial) a) FROM member""",
    "column rights": """
        SELECT name, 'rights on columns', (SELECT string_agg(a.attname || a.attacl::text, ' ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = objid AND a.attacl IS NOT NULL)
        FROM member WHERE classid = 'pg_class'::regclass""",
    "dependencies": """
        SELECT m.name, 'dependencies', (SELECT string_agg(DISTINCT concat_ws(' ', d.deptype, i.type, i.identity), E'\\n') FROM pg_depend d, pg_identify_object(d.refclassid, d.refobjid, 0) i
            WHERE d.classid = m.classid AND d.objid = m.objid AND d.objsubid = 0 AND d.deptype <> 'i') FROM member m""",
    "dumped": """
        SELECT m.name, 'dumped', 'rows' || extcondition[n] FROM extension, unnest(extconfig) WITH ORDINALITY u(oid, n) JOIN member m ON classid = 'pg_class'::regclass AND objid = u.oid""",
}


@dataclass
class Member:
    """A member of an extension: number has the order of creation; object is its name in GRANT and ALTER."""

    kind: str
    identity: str
    object: str
    number: int
    aspects: dict[str, str] = field(default_factory=dict)


def members(conn: db.Connection, extension: str) -> dict[str, Member]:
    """The members of the extension by their names, such as "view aq.queues"."""
    with conn.transaction():
        conn.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        conn.execute(MEMBERS.format(extension=extension))
        conn.execute(f"CREATE TEMPORARY TABLE extension ON COMMIT DROP AS SELECT * FROM pg_extension WHERE extname = '{extension}'")
        rows = conn.execute("SELECT name, kind, identity, object, number FROM member ORDER BY number").fetchall()
        found = {name: Member(*more) for name, *more in rows}
        for query in ASPECTS.values():
            for name, aspect, text in conn.execute(query):
                if text is not None:
                    found[name].aspects[aspect] = text
    return found


# A column that is only NULL::text gets a name when its printed definition is read again.
NAME_OF_NULL = re.compile(r"(NULL::[\w. ]+?) AS \w+")


def same(one: str | None, other: str | None) -> bool:
    """Do both texts define the same?"""
    return one == other or (one is not None and other is not None and NAME_OF_NULL.sub(r"\1", one) == NAME_OF_NULL.sub(r"\1", other))


def differences(one: dict[str, Member], other: dict[str, Member]) -> dict[str, dict[str, tuple[str | None, str | None]]]:
    """Members that are not the same in both, with the aspects that differ."""
    found = {}
    for name in sorted({*one, *other}):
        here, there = (side[name].aspects if name in side else {} for side in (one, other))
        differing = {
            aspect: (here.get(aspect), there.get(aspect))
            for aspect in sorted({*here, *there})
            if not same(here.get(aspect), there.get(aspect))
        }
        if differing:
            found[name] = differing
    return found
