"""The members of an extension in a form without OIDs, to compare an installed extension with an upgraded one."""

from __future__ import annotations

from pgaq import db

# Name of the member, then all that its definition says.
MEMBERS = """
    WITH m AS (SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
        WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = %(extension)s)
    SELECT i.type || ' ' || i.identity, concat_ws(E'\n', obj_description(m.objid, m.classid::regclass::text), CASE m.classid
        WHEN 'pg_proc'::regclass THEN (SELECT concat_ws(E'\n', pg_get_functiondef(p.oid), acl.text, p.proowner::regrole) FROM pg_proc p,
            LATERAL (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(p.proacl) a) acl(text) WHERE p.oid = m.objid)
        WHEN 'pg_class'::regclass THEN (SELECT concat_ws(E'\n', c.relkind, c.relpersistence, c.reloptions::text, c.relowner::regrole,
            (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(c.relacl) a),
            (SELECT string_agg(concat_ws(' ', row_number, attname, type, attnotnull, attstorage, initial, comment), E'\n' ORDER BY row_number) FROM (
                SELECT row_number() OVER (ORDER BY a.attnum), a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull, a.attstorage,
                    pg_get_expr(f.adbin, f.adrelid) AS initial, col_description(c.oid, a.attnum) AS comment
                FROM pg_attribute a LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
                WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) l),
            (SELECT string_agg(conname || ' ' || pg_get_constraintdef(o.oid), E'\n' ORDER BY conname) FROM pg_constraint o WHERE o.conrelid = c.oid),
            (SELECT string_agg(pg_get_indexdef(x.indexrelid), E'\n' ORDER BY 1) FROM pg_index x WHERE x.indrelid = c.oid),
            (SELECT string_agg(pg_get_triggerdef(t.oid), E'\n' ORDER BY 1) FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),
            CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END,
            CASE WHEN c.relkind = 'S' THEN (SELECT concat_ws(' ', format_type(q.seqtypid, NULL), q.seqstart, q.seqincrement, q.seqmax, q.seqmin) FROM pg_sequence q WHERE q.seqrelid = c.oid) END)
            FROM pg_class c WHERE c.oid = m.objid)
        WHEN 'pg_type'::regclass THEN (SELECT concat_ws(' ', y.typtype, format_type(y.typbasetype, y.typtypmod), y.typnotnull, y.typdefault, y.typlen) FROM pg_type y WHERE y.oid = m.objid)
        WHEN 'pg_namespace'::regclass THEN (SELECT concat_ws(' ', n.nspowner::regrole, (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(n.nspacl) a))
            FROM pg_namespace n WHERE n.oid = m.objid) END)
    FROM m, LATERAL pg_identify_object(m.classid, m.objid, 0) i"""
DUMPED = """SELECT c.oid::regclass::text, e.extcondition[n] FROM pg_extension e, unnest(e.extconfig) WITH ORDINALITY u(oid, n) JOIN pg_class c USING (oid)
    WHERE e.extname = %(extension)s"""


def members(conn: db.Connection, extension: str) -> dict[str, str]:
    """Each member of the extension with its definition, rights and comments; which tables are dumped with their rows."""
    found = dict(conn.execute(MEMBERS, {"extension": extension}).fetchall())
    return {**found, **{f"dumped {name}": condition for name, condition in conn.execute(DUMPED, {"extension": extension})}}


def differences(one: dict[str, str], other: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Members that are not the same in both."""
    return {name: (one.get(name), other.get(name)) for name in sorted({*one, *other}) if one.get(name) != other.get(name)}
