"""Upgrade scripts: the difference between what a new version installs and what the scripts make of the version before.

    tools/upgrade               shows the members of the extensions that differ
    tools/upgrade --write       writes what is mechanical of that into sql/upgrade: schemas, functions, views, comments, owners and rights, created, replaced
                                or dropped
    tools/upgrade --freeze      keeps the complete scripts of this version in tests/released: for the commit of a release

What changes tables, types and sequences is written by hand, above the line that the generated part begins with. A view with other columns, or a function
with another result, is dropped and created again, with the members that depend on it.

A function with more parameters is another function: the old one is dropped first, because calls that suit both are ambiguous, and the new one gets the
privileges that were granted on it. Members that call it in a body that was parsed at creation are created again: by hand, give each another body before.
"""

from __future__ import annotations

import argparse
import contextlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import psycopg

from pgaq import db, places
from pgaq.server import Server
from pgaq_proof import catalog
from pgaq_proof.catalog import same

EXTENSIONS = ["pgaq", "pgaq_oracle", "pgaq_lab"]
ATTEMPTS = 500  # of an eighth of a second each, if it gets no lock
SCRIPTS = places.ROOT / "sql" / "upgrade"
RELEASED = places.ROOT / "tests" / "released"
GENERATED = "-- Written by tools/upgrade --write from here to the end: functions and views, their comments, owners and rights.\n"

# which members depend on which
DEPENDENTS = """
    SELECT DISTINCT m.name, r.name FROM pg_depend d LEFT JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
        LEFT JOIN pg_type y ON d.refclassid = 'pg_type'::regclass AND y.oid = d.refobjid
        JOIN member m ON m.classid = CASE WHEN w.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END AND m.objid = coalesce(w.ev_class, d.objid)
        JOIN member r ON r.classid = d.refclassid AND r.objid = d.refobjid OR r.classid = 'pg_class'::regclass AND r.objid = y.typrelid
    WHERE m.name <> r.name"""


def version() -> str:
    """The version of the source tree."""
    return re.search(r"^default_version = '(.*)'", (places.ROOT / "pgaq.control").read_text(), re.M)[1]


def released() -> list[str]:
    """The versions whose scripts are kept, from the oldest to the newest."""
    return sorted((path.name for path in RELEASED.iterdir()), key=lambda name: [int(part) for part in name.split(".")])


def script(extension: str, old: str) -> Path:
    """The script that leads from a version to this one."""
    return SCRIPTS / f"{extension}--{old}--{version()}.sql"


@dataclass
class Installation:
    """A copy of the server's installation, in which files may be added. Programs find their files by their own place."""

    bindir: Path
    scripts: Path  # folder of control files and scripts


@contextlib.contextmanager
def installation(of_tree: bool = False) -> Iterator[Installation]:
    """A copy of the installation with the scripts of released versions; of_tree: with control files and scripts as they are in the source tree now."""
    parts = {name: Path(places.pg_config(name)) for name in ("bindir", "sharedir", "pkglibdir")}
    root = Path(os.path.commonpath(list(parts.values())))
    copy = Path(tempfile.mkdtemp(prefix="pgaq-versions-", dir=os.environ.get("PGAQ_RUN_DIR") or "/tmp"))
    copy.chmod(0o755)
    there = {name: copy / path.relative_to(root) for name, path in parts.items()}
    scripts = there["sharedir"] / "extension"
    try:
        there["bindir"].mkdir(parents=True)
        for program in parts["bindir"].iterdir():
            # these ask where they are; the others may be links
            shutil.copy(program, there["bindir"]) if program.name in ("postgres", "initdb") else (
                there["bindir"] / program.name
            ).symlink_to(program)
        shutil.copytree(parts["sharedir"], there["sharedir"], ignore=shutil.ignore_patterns("man", "doc", "locale"), symlinks=True)
        there["pkglibdir"].parent.mkdir(parents=True, exist_ok=True)
        there["pkglibdir"].symlink_to(parts["pkglibdir"])
        for old in released():
            for path in (RELEASED / old).glob("*.sql.xz"):
                (scripts / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
        if of_tree:
            for path in [*places.ROOT.glob("*.control"), *(places.ROOT / "sql").glob("pgaq*--*.sql"), *SCRIPTS.glob("*.sql")]:
                shutil.copy(path, scripts)
        yield Installation(there["bindir"], scripts)
    finally:
        shutil.rmtree(copy)


def create(conn: db.Connection, version: str, extensions: list[str] = EXTENSIONS) -> None:
    """The extensions in this version."""
    for extension in extensions:
        conn.execute(f"CREATE EXTENSION {extension} VERSION '{version}'")


def update(conn: db.Connection, version: str, extensions: list[str] = EXTENSIONS) -> None:
    """The extensions to this version; repeated while sessions hold locks for too long, as docs/upgrade.md says."""
    for extension in extensions:
        for attempt in range(ATTEMPTS):
            try:
                conn.execute(f"ALTER EXTENSION {extension} UPDATE TO '{version}'")
                break
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                if attempt + 1 == ATTEMPTS:
                    raise


# -- the generated part


def is_code(member: catalog.Member) -> bool:
    return member.kind in ("function", "procedure", "view", "schema")


def can_be_replaced(old: catalog.Member, new: catalog.Member) -> bool:
    """Does CREATE OR REPLACE make the new one of the old one?"""
    if old.kind == "view":
        return (new.aspects["columns"] + "\n").startswith(old.aspects["columns"] + "\n")
    if old.kind == "schema":
        return True
    (before, defaults), (after, more) = (member.aspects["signature"].rsplit(" with ", 1) for member in (old, new))
    return before == after and int(defaults.split()[0]) <= int(more.split()[0])


def with_dependents(names: set[str], dependents: list[tuple[str, str]]) -> set[str]:
    """These members and those that depend on them."""
    found = set(names)
    while more := {name for name, other in dependents if other in found} - found:
        found |= more
    return found


def rights(old: catalog.Member | None, new: catalog.Member) -> Iterator[str]:
    """What gives a member its owner and rights."""
    before = old.aspects if old is not None else {}
    owned = "ALTER {} OWNER TO CURRENT_USER".format(new.object)
    if new.aspects.get("owner", owned) != before.get("owner", owned):
        yield new.aspects["owner"]
        if old is not None:  # so that pg_dump does not take the former owner's rights for the initial ones
            yield f"GRANT ALL ON {new.object} TO " + new.aspects["owner"].rpartition(" ")[2]
    if "rights" in new.aspects and new.aspects["rights"] != before.get("rights"):
        grantees = re.findall(r" TO (\S+?)(?:;|$| WITH)", before.get("rights", ""))
        yield from (f"REVOKE ALL ON {new.object} FROM {grantee}" for grantee in grantees or ["PUBLIC"])
        yield new.aspects["rights"]


# Half of the time after which a session that waits looks for a deadlock: so the update, not the session, gives up.
LOCKS = """-- Sessions that read these views wait until the end. None of them fails: this fails if it does not get all locks in time.
DO $$
DECLARE
	until CONSTANT timestamptz := clock_timestamp() + current_setting('deadlock_timeout')::interval / 2;
	setting CONSTANT text := current_setting('lock_timeout');
	command text;
BEGIN
	FOR command IN SELECT format('ALTER VIEW %s OWNER TO %s', oid::regclass, relowner::regrole) FROM pg_class WHERE oid = ANY (ARRAY[
		{}]::regclass[]) LOOP
		PERFORM set_config('lock_timeout', (greatest(1, 1000 * extract(epoch FROM until - clock_timestamp())))::integer::text, true);
		EXECUTE command;
	END LOOP;
	-- the transaction may go on behind this script
	PERFORM set_config('lock_timeout', setting, true);
END $$"""


RENEWED = """-- These functions get more arguments or another result, so they are other ones. The new ones get the privileges that were granted on the old ones or revoked.
DO $$
DECLARE
	users text;
BEGIN
	SELECT string_agg(DISTINCT pg_describe_object(u.classid, u.objid, 0), ', ') INTO users
	FROM pg_depend d LEFT JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid,
		LATERAL (SELECT CASE WHEN w.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END AS classid, coalesce(w.ev_class, d.objid) AS objid) u
	WHERE d.refclassid = 'pg_proc'::regclass AND d.deptype = 'n' AND d.refobjid = ANY (ARRAY[
		{old}]::regprocedure[])
		AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = u.classid AND e.objid = u.objid AND e.deptype = 'e');
	IF users IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist', MESSAGE = 'functions of the extension "{extension}" that get more arguments or columns are in use',
			DETAIL = 'They are called by: ' || users || '.', HINT = 'Drop what calls them. Then repeat the command, and create it again.';
	END IF;
	PERFORM set_config('pgaq_update.privileges', (SELECT jsonb_agg(jsonb_build_object('function', f.new, 'owner', p.proowner, 'acl', coalesce(p.proacl, acldefault('f', p.proowner))::text,
			'initial', i.initprivs::text))
		FROM unnest(ARRAY[{old}]::regprocedure[],
			ARRAY[{new}]) f (old, new)
		JOIN pg_proc p ON p.oid = f.old LEFT JOIN pg_init_privs i ON i.objoid = p.oid AND i.classoid = 'pg_proc'::regclass
		WHERE coalesce(p.proacl, i.initprivs) IS NOT NULL)::text, true);
END $$"""

# PostgreSQL takes privileges that a script grants for the extension's own, and pg_dump leaves these out. So pg_init_privs gets the row of the old function
# again, with the privileges that another extension has granted on it.
PRIVILEGES = """DO $$
DECLARE
	function record;
	given record;
	initial aclitem[];
BEGIN
	FOR function IN SELECT p.oid, p.oid::regprocedure AS name, r.owner, r.acl, r.initial, p.proacl, p.proowner
		FROM jsonb_to_recordset(nullif(current_setting('pgaq_update.privileges', true), '')::jsonb) AS r (function text, owner oid, acl aclitem[], initial aclitem[])
		JOIN pg_proc p ON p.oid = r.function::regprocedure LOOP
		initial := function.initial;
		IF function.owner <> function.proowner THEN
			initial := (SELECT initprivs FROM pg_init_privs WHERE objoid = function.oid AND classoid = 'pg_proc'::regclass);
		END IF;
		FOR given IN SELECT DISTINCT grantee FROM aclexplode(coalesce(function.proacl, acldefault('f', function.proowner))) WHERE grantee <> function.proowner LOOP
			EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', function.name, CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END);
		END LOOP;
		FOR given IN SELECT grantee, bool_or(is_grantable) AS is_grantable FROM aclexplode(nullif(function.acl, '{}'))
			WHERE grantee NOT IN (function.owner, function.proowner) GROUP BY grantee LOOP
			EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s%s', function.name, CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END,
				CASE WHEN given.is_grantable THEN ' WITH GRANT OPTION' END);
		END LOOP;
		DELETE FROM pg_init_privs WHERE objoid = function.oid AND classoid = 'pg_proc'::regclass;
		DELETE FROM pg_shdepend WHERE classid = 'pg_proc'::regclass AND objid = function.oid AND deptype = 'i' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND refobjid <> ALL (ARRAY(SELECT grantee FROM aclexplode(initial)));
		IF initial IS NOT NULL THEN
			INSERT INTO pg_init_privs (objoid, classoid, objsubid, privtype, initprivs) VALUES (function.oid, 'pg_proc'::regclass, 0, 'e', initial);
		END IF;
		IF current_setting('server_version_num')::integer >= 170000 THEN
			-- roles whose privileges were revoked since; the oids of pinned ones are lower
			INSERT INTO pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
			SELECT DISTINCT d.oid, 'pg_proc'::regclass, function.oid, 0, 'pg_authid'::regclass, i.grantee, 'i'::"char"
			FROM pg_database d, aclexplode(initial) i WHERE d.datname = current_database() AND i.grantee >= 12000 AND NOT EXISTS (SELECT FROM pg_shdepend s
				WHERE s.dbid = d.oid AND s.classid = 'pg_proc'::regclass AND s.objid = function.oid AND s.refobjid = i.grantee AND s.deptype = 'i');
		END IF;
	END LOOP;
END $$"""


def arguments(member: catalog.Member) -> list[str]:
    return member.identity.partition("(")[2].removesuffix(")").split(",")


def renewals(old: dict[str, catalog.Member], new: dict[str, catalog.Member]) -> dict[str, str]:
    """The functions that get more arguments, or for users another result, and what they become."""
    found = {
        name: name
        for name in {*old} & {*new}
        if new[name].kind == "function" and new[name].identity.startswith("aq.") and not can_be_replaced(old[name], new[name])
    }
    for name in {*old} - {*new}:
        if old[name].kind != "function":
            continue
        begin = arguments(old[name])
        becomes = [
            other
            for other in {*new} - {*old}
            if new[other].kind == "function"
            and new[other].identity.partition("(")[0] == old[name].identity.partition("(")[0]
            and arguments(new[other])[: len(begin)] == begin
        ]
        if becomes:
            (found[name],) = becomes
    return found


def generate(
    extension: str, old: dict[str, catalog.Member], new: dict[str, catalog.Member], dependents: list[tuple[str, str]]
) -> Iterator[str]:
    """The statements that make functions and views of the old ones the new ones. Raises ValueError for a table that must be dropped for that."""
    both = {name for name in {*old} & {*new} if is_code(new[name])}
    first = with_dependents({name for name in both if not can_be_replaced(old[name], new[name])}, dependents)
    obstacles = [name for name in first if not is_code(old[name])]
    if obstacles:
        raise ValueError(f"{', '.join(sorted(obstacles))}: depends on what must be dropped")
    renewed = renewals(old, new)
    last = {name for name in {*old} - {*new} if is_code(old[name])} - first - {*renewed}
    replaced = {name for name in both if not same(old[name].aspects["definition"], new[name].aspects["definition"])}
    replaced |= {name for name, other in dependents if other in renewed and name in both} - first
    locked = [repr(old[name].identity) for name in sorted(first | last | replaced) if old[name].kind == "view"]
    if locked:
        yield LOCKS.format(", ".join(locked))
    if renewed:
        pairs = sorted(renewed.items())
        yield RENEWED.format(
            extension=extension,
            old=",\n\t\t".join(repr(old[name].identity) for name, _ in pairs),
            new=",\n\t\t".join(repr(new[name].identity) for _, name in pairs),
        )
    for name in sorted(first | {*renewed}, key=lambda name: -old[name].number):
        yield f"DROP {old[name].kind.upper()} {old[name].identity}"
    left = {name: member for name, member in old.items() if name not in first and name not in renewed}
    for name, member in new.items():  # in the order of their creation
        before = left.get(name)
        if is_code(member) and (before is None or name in replaced):
            yield member.aspects["definition"].strip().removesuffix(";")
    for name in sorted(last, key=lambda name: -old[name].number):
        yield f"DROP {old[name].kind.upper()} {old[name].identity}"
    for name, member in new.items():
        before = left.get(name)
        if before is None and not is_code(member):
            continue
        for aspect, text in member.aspects.items():
            if aspect.startswith("comment") and (before is None or before.aspects.get(aspect) != text):
                yield text
        for aspect, text in (before.aspects if before is not None else {}).items():
            if aspect.startswith("comment") and aspect not in member.aspects and not (aspect != "comment" and member.kind == "table"):
                yield re.sub(r" IS '.*", " IS NULL", text, flags=re.S)
        yield from rights(before, member)
    if renewed:
        yield PRIVILEGES


def hand_part(path: Path) -> str:
    """What is written by hand of a script; a new one begins with what refuses a server on which it would not work."""
    if path.exists():
        return path.read_text().partition(GENERATED)[0]
    extension = path.name.split("--")[0]
    begin = (places.ROOT / "sql" / ("library_version.sql" if extension == "pgaq" else "pgaq_version.sql")).read_text()
    begin = begin.replace("@EXTENSION@", extension).replace("@VERSION@", version())
    return f'\\echo Use "ALTER EXTENSION {extension} UPDATE" to load this file. \\quit\n{begin}\n'


def write(server: Server, scripts: Path, old: str) -> None:
    """Writes the generated parts, one extension after the other, because a script may use what those before it have made."""
    new = {}
    with database(server, "installed") as conn:
        for extension in EXTENSIONS:  # without what the ones behind it grant on its members
            create(conn, version(), [extension])
            new[extension] = catalog.members(conn, extension)
    for extension in EXTENSIONS:
        path = script(extension, old)
        (scripts / path.name).write_text(hand_part(path))
        with database(server, "updated") as conn:
            there = EXTENSIONS[: EXTENSIONS.index(extension) + 1]
            create(conn, old, there)
            update(conn, version(), there)
            before = catalog.members(conn, extension)
            with conn.transaction():
                conn.execute(catalog.MEMBERS.format(extension=extension))
                dependents = conn.execute(DEPENDENTS).fetchall()
        statements = "".join(f"{statement};\n" for statement in generate(extension, before, new[extension], dependents))
        path.write_text(hand_part(path) + GENERATED + statements)
        shutil.copy(path, scripts)


# -- the command


@contextlib.contextmanager
def database(server: Server, name: str) -> Iterator[db.Connection]:
    """A database that is dropped afterwards."""
    with server.connect() as conn:
        conn.execute(f"CREATE DATABASE {name}")
    try:
        with server.connect(name) as conn:
            yield conn
    finally:
        with server.connect() as conn:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


def compare(server: Server, old: str) -> dict[str, dict[str, tuple[str | None, str | None]]]:
    """The members of all extensions that are not the same in an installation of this version and after an update."""
    found = {}
    with database(server, "installed") as installed, database(server, "updated") as updated:
        create(installed, version())
        create(updated, old)
        update(updated, version())
        for extension in EXTENSIONS:
            found |= catalog.differences(catalog.members(installed, extension), catalog.members(updated, extension))
    return found


def shown(found: dict[str, dict[str, tuple[str | None, str | None]]]) -> str:
    """The differences for a reader: the installed one behind +, the updated one behind -."""
    lines = []
    for name, aspects in found.items():
        for aspect, sides in aspects.items():
            lines.append(f"{name}: {aspect}")
            one, other = ((text or "").splitlines() for text in sides)
            lines += [f"    + {line}" for line in one if line not in other] + [f"    - {line}" for line in other if line not in one]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/upgrade", description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write what is mechanical into sql/upgrade")
    parser.add_argument("--freeze", action="store_true", help="keep the scripts of this version in tests/released")
    arguments = parser.parse_args()
    subprocess.run([places.ROOT / "tools" / "setup", "demo"], check=True)
    if arguments.freeze:
        folder = RELEASED / version()
        folder.mkdir(exist_ok=True)
        for path in sorted((places.ROOT / "sql").glob(f"pgaq*--{version()}.sql")):
            (folder / f"{path.name}.xz").write_bytes(lzma.compress(path.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
        return 0
    old = [name for name in released() if name != version()][-1]
    with installation(of_tree=True) as there, Server.temporary("upgrade", bindir=there.bindir) as server:
        if arguments.write:
            write(server, there.scripts, old)
        found = compare(server, old)
    if found:
        print(shown(found))
        print(
            f"{len(found)} members differ after ALTER EXTENSION ... UPDATE from {old}."
            + ("" if arguments.write else " tools/upgrade --write writes what is mechanical.")
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
