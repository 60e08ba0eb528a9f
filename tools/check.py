#!/usr/bin/env python3
"""Checks of form: the rules of the house that a compiler does not know.

    tools/check.py              all checks
    tools/check.py --no-server  without those that need a running server

Every check prints its failures as "file:line: what is wrong"; the last line is
"N passed, N failed" and the exit status is 1 when one failed.  CONTRIBUTING.md
says what each rule is for.
"""

import argparse
import ast
import functools
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # left out where Python runs in safe mode
from check_pages import check_lengths, check_workflow
from mkdocs_hooks import groups, slug
from symbols import Symbols
from version import check_version

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
JMS = ROOT / "jms"
MAX_LINES = 900
MORE_PUBLIC = {"queue/store.h", "queue/calls.h"}  # what a store must do; the calls for parts with other functions for users

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
TABLE_ROW = re.compile(r"^\|\s*([a-z.]+)\s*\|\s*([^|]*?)\s*\|")
SYMBOL_OK = re.compile(r"^(aq_|Aq|_PG_init$|Pg_magic_func$|pg_finfo_aq_|_init$|_fini$|__|_edata$|_end$)")
OWN_WAITING = re.compile(
    r"stdatomic\.h|port/atomics\.h|\b__(sync|atomic)_\w+|\b(SpinLock(Acquire|Init)|LWLock(Initialize|NewTrancheId|RegisterTranche)|ConditionVariable\w+"
    r"|pg_usleep|WaitLatch|PGSemaphore\w+|LWLock(Acquire|ConditionalAcquire)\w*)\s*\("
)
SERVER_LOCK = re.compile(r"LWLock(Acquire|ConditionalAcquire)\(\s*([A-Z]\w*Lock)\s*,")


def relative(path):
    return path.relative_to(ROOT).as_posix()


def c_files():
    return sorted(p for p in SRC.rglob("*") if p.suffix in (".c", ".h"))


def part_of(path):
    """The part that a file under src/ belongs to, in one of its folders or not; None: module.c."""
    parts = path.relative_to(SRC).parts
    return parts[0] if len(parts) > 1 else None


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


# --- layers ------------------------------------------------------------------


def uses_table(readme, what):
    """The table of a README that begins "| part | may use |": part (or folder) -> set of those it may use."""
    table, inside = {}, False
    for line in lines_of(readme):
        if line.startswith(f"| {what} | may use |"):
            inside = True
        elif not line.startswith("|"):
            inside = False
        row = TABLE_ROW.match(line)
        if inside and row and row[1] not in (what, "module.c"):
            table[row[1]] = set(row[2].split()) - {"PostgreSQL"}
    return table


def dependency_table():
    """The table of src/README.md: part -> set of the parts it may use."""
    return uses_table(SRC / "README.md", "part")


def downward(readme, table):
    """What a row of the table uses stands above it in the table, where the lower ones are."""
    seen = []
    for name, uses in table.items():
        for used in sorted(uses):
            if used not in table:
                yield f"{relative(readme)}: {name} uses {used}, which has no row"
            elif used not in seen:
                yield f"{relative(readme)}: {name} uses {used}, which stands below it"
        seen.append(name)


def check_layers():
    """Includes follow the table in src/README.md and name public headers only."""
    table = dependency_table()
    yield from downward(SRC / "README.md", table)
    for folder in sorted(p for p in SRC.iterdir() if p.is_dir()):
        if folder.name not in table and any(folder.iterdir()):
            yield f"src/README.md: no row for src/{folder.name}"
    for path in c_files():
        part = part_of(path)
        for number, line in enumerate(lines_of(path), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            where, name = f"{relative(path)}:{number}", match[1]
            target = name.split("/")[0]
            if "/" not in name and (path.parent / name).exists():
                yield f'{where}: write the folder too: "{path.parent.relative_to(SRC)}/{name}"'
            if target not in table or not (SRC / name).exists():
                continue
            if part is None:
                if name != f"{target}/{target}.h":
                    yield f"{where}: {name} is not the public header of {target}"
            elif target != part:
                if target not in table.get(part, ()):
                    yield f"{where}: {part} may not use {target}"
                elif name != f"{target}/{target}.h" and name not in MORE_PUBLIC:
                    yield f"{where}: {name} is not the public header of {target}"


def check_parts():
    """Every part has a public header and a README that names each of its files."""
    for part in dependency_table():
        folder = SRC / part
        if not folder.is_dir():
            yield f"src/README.md: there is no folder src/{part}"
            continue
        for needed in (f"{part}.h", "README.md"):
            if not (folder / needed).exists():
                yield f"src/{part}/{needed}: missing"
        for path in sorted(folder.rglob("*.c")):
            if f"`{path.name}`" not in (folder / "README.md").read_text():
                yield f"src/{part}/README.md: says nothing of {path.name}"


# --- circles and names, by the symbols of the built objects -----------------------


@functools.cache
def symbols():
    return Symbols(SRC)


def check_circles():
    """The files of a part do not use each other in circles."""
    for path in symbols().unbuilt:
        yield f"{relative(path)}: not built; run make first"
    for part in dependency_table():
        for circle in symbols().circles(SRC / part):
            yield f"src/{part}: {len(circle)} files use each other in a circle: {' '.join(path.name for path in circle)}"


def check_folders():
    """The folders of a part use each other as the table in its README says."""
    for part in dependency_table():
        root = SRC / part
        folders = {path.name for path in root.iterdir() if path.is_dir()}
        table = uses_table(root / "README.md", "folder")
        if folders != set(table):
            yield f"src/{part}/README.md: its table of folders has {sorted(table)}, the folder has {sorted(folders)}"
            continue
        yield from downward(root / "README.md", table)
        for path in symbols().used:
            folder = path.parent.name
            if path.parent.parent != root:
                continue
            for used, names in symbols().uses(path).items():
                may = used.parent == path.parent or used.parent.name in table[folder]  # nor what stands beside the folders
                if used.is_relative_to(root) and not may:
                    yield f"{relative(path)}: folder {folder} may not use {relative(used)} ({' '.join(names)})"


def check_prefixes():
    """An external symbol begins with aq_ and the stem of its file."""
    for path, name in symbols().misnamed():
        yield f"{relative(path)}: {name} should begin with aq_{path.stem}"


# --- files -------------------------------------------------------------------


def check_sizes():
    """No source file is longer than 900 lines."""
    places = [
        (SRC, ("*.c", "*.h")),
        (ROOT / "sql", ("*.sql",)),
        (ROOT / "tools", ("*.py",)),
        (ROOT / "python", ("*.py",)),
        (ROOT / "tests", ("*.py", "*.c", "*.h")),
        (JMS, ("*.java",)),
    ]
    for folder, patterns in places:
        for pattern in patterns:
            for path in sorted(folder.rglob(pattern)):
                count = len(lines_of(path))
                if "--" in path.name:  # assembled by make
                    continue
                if count > MAX_LINES:
                    yield f"{relative(path)}: {count} lines, more than {MAX_LINES}"


# --- jms/ ---------------------------------------------------------------------------

JAVA_PACKAGE = re.compile(r"^package io\.github\.pgaq\.jms(\.\w+)?;")
JAVA_IMPORT = re.compile(r"^import (?:static )?io\.github\.pgaq\.jms(\.[a-z]\w*)?\.")
JAVA_ROW = re.compile(r"^\| (?:`(\.\w+)`|\(root\)) \| ([^|]*)\|")
# turns of phrase that stop a native reader, with what to write instead
STUMBLES = {
    re.compile(pattern): better
    for pattern, better in (
        (r"^[ */#|-]*(?:Who|Whoever) (?!can do|sees what)[a-z]+ ", "the role, session or process that ..."),
        (r" (?:his|him|somebody|nobody) ", "it; another role; no session"),
        (r"(?<!there) is none\b| no use to ", "does not count as; does not help"),
        (r" in the hands of |\bin hand\b", "locked, in flight"),
        (r"\bany ?more\b", "no longer"),
        (r"\banew\b|\bcomes? again\b", "again; is delivered again"),
        (r"\bso many\b|\bat most so\b|\bso often[,.;:]|\bfor so long\b", "this number; this time; the most"),
        (r"\bof late\b|\bin vain\b|\bwrit(?:es?|ten) down\b", "recently; without success; records"),
        (r"\bgoes on\b|\bgo on with\b", "continues"),
        (r"\bfor ever\b", "forever"),
        (r"\bsees? to (?:it|its|this|that)\b", "does, checks, updates"),
        (r"\btells? of\b|\bdoes not tell\b", "names; does not show"),
        (r"\ball the same\b", "nevertheless"),
        (r"\bof it that\b", "name it again"),
        (r"\b(?:what|whatever) becomes of\b", "what happens to"),
        (r"[:;,] else (?:the|a|an|it|they|this|that) ", "otherwise"),
        (r"\bhas it that\b|\bof old\b", "a verb that does the work; legacy"),
    )
}
# and in pages, which include the comments on functions and columns
STUMBLES_OF_PAGES = STUMBLES | {re.compile(r"\bRights\b|\brights\b|\bthe right (?:on|of|to)\b"): "privileges"}
# generated from what is checked itself, or by runs of other versions
NOT_WRITTEN = re.compile(r"<!-- results of the lab: begin -->.*?<!-- results of the lab: end -->", re.S)


def written(folder, *suffixes):
    """The files below a folder that people write."""
    return sorted(p for p in folder.rglob("*") if p.suffix in suffixes and "target" not in p.parts)


def check_packages():
    """The packages of the JMS provider use each other as the table in jms/README.md says."""
    table = {row[1] or "": row[2].split() for row in map(JAVA_ROW.match, lines_of(JMS / "README.md")) if row}
    main = JMS / "pgaq-jms" / "src" / "main" / "java"
    for path in written(main, ".java"):
        package = None
        for number, line in enumerate(lines_of(path), 1):
            declared, imported = JAVA_PACKAGE.match(line), JAVA_IMPORT.match(line)
            if declared:
                package = declared[1] or ""
                if package not in table:
                    yield f"{relative(path)}:{number}: jms/README.md has no row for {package}"
            elif imported and imported[1] and imported[1] != package and package in table:
                # every package may use the root's destinations and options
                if table[package] != ["all"] and imported[1][1:] not in table[package]:
                    yield f"{relative(path)}:{number}: {package} may not use {imported[1]}"


def check_java():
    """Lines of jms/ have at most 120 characters."""
    for path in written(JMS, ".java", ".md", ".xml"):
        for number, line in enumerate(lines_of(path), 1):
            if len(line) > 120 and not (path.suffix == ".md" and line.startswith("|")):
                yield f"{relative(path)}:{number}: {len(line)} characters"


def check_words():
    """Pages, comments and messages do not use turns of phrase that stop a native reader."""
    for folder in ("src", "sql", "python", "jms", "docs", "bench"):
        for path in written(ROOT / folder, ".c", ".h", ".sql", ".py", ".toml", ".java", ".md"):
            if "--" in path.name:  # assembled by make
                continue
            text = NOT_WRITTEN.sub(lambda m: "\n" * m[0].count("\n"), path.read_text(encoding="utf-8"))
            for number, line in enumerate(text.split("\n"), 1):
                for stumble, better in (STUMBLES_OF_PAGES if folder == "docs" else STUMBLES).items():
                    if match := stumble.search(line):
                        yield f'{relative(path)}:{number}: "{match[0].strip()}": {better}'


def check_stems():
    """A file's stem is unique under src/ (a .c and a .h of one name go together)."""
    seen = {}
    for path in c_files():
        key = (path.stem, path.suffix)
        if key in seen:
            yield f"{relative(path)}: same name as {relative(seen[key])}"
        seen.setdefault(key, path)
        twin = seen.get((path.stem, ".h" if path.suffix == ".c" else ".c"))
        if twin and part_of(twin) != part_of(path):
            yield f"{relative(path)}: same stem as {relative(twin)}"


def check_guards():
    """Header guards are AQ_..._H; list headers, included several times, have none."""
    for path in c_files():
        if path.suffix != ".h" or path.stem.endswith("_list"):
            continue
        text = path.read_text(encoding="utf-8")
        match = re.search(r"^#ifndef (\w+)\n#define (\w+)", text, re.M)
        if not match or match[1] != match[2] or not re.fullmatch(r"AQ_\w+_H", match[1]):
            yield f"{relative(path)}: guard should be #ifndef / #define AQ_{path.stem.upper()}_H"


def check_comments():
    """C comments are /* */; no line comments, no trailing blanks."""
    for path in c_files():
        for number, line in enumerate(lines_of(path), 1):
            bare = re.sub(r'"(\\.|[^"\\])*"', '""', line)
            if re.search(r"(^|[^:])//", bare):
                yield f"{relative(path)}:{number}: line comment"
            if line != line.rstrip():
                yield f"{relative(path)}:{number}: trailing blanks"


# --- lists and locks ---------------------------------------------------------


def list_rows(path):
    """(line number, id, other fields as text) of an X-list, rows joined over lines; PROPERTY: see queue_column_list.h."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), path.read_text(encoding="utf-8"), flags=re.S)
    for match in re.finditer(r"^(?:X|PROPERTY)\(\s*(\w+)\s*,(.*?)\)\s*$", text, re.M | re.S):
        yield text.count("\n", 0, match.start()) + 1, match[1], match[2].strip()


def first_string(fields):
    match = re.match(r'"((?:\\.|[^"\\])*)"', fields)
    return match[1] if match else None


def check_lists():
    """List headers: ids and names once only; errors in the order of their code."""
    for path in sorted(SRC.rglob("*_list.h")):
        ids, names, previous = {}, {}, ""
        rows = 0
        for number, ident, fields in list_rows(path):
            rows += 1
            where = f"{relative(path)}:{number}"
            if ident in ids:
                yield f"{where}: id {ident} stands at line {ids[ident]} too"
            ids.setdefault(ident, number)
            name = first_string(fields)
            if name is not None and name in names:
                yield f'{where}: "{name}" stands at line {names[name]} too'
            names.setdefault(name, number)
            if path.stem == "errors_list":
                if name <= previous:
                    yield f"{where}: {name} after {previous}"
                previous = name
        if rows == 0:
            yield f"{relative(path)}: no rows"


COLUMN_TYPES = {
    "BOOL": "boolean",
    "CHAR": '"char"',
    "FLOAT8": "double precision",
    "INT2": "smallint",
    "INT4": "integer",
    "INT8": "bigint",
    "INTERVAL": "interval",
    "REGTYPE": "regtype",
    "TEXT": "text",
    "TIMESTAMPTZ": "timestamptz",
}
ONLY_CREATED = {"distributed"}  # properties that aq.alter_queue does not change


def check_queue_columns():
    """queue_column_list.h has the columns of aq_internal.queue; its properties are arguments, and columns of aq.queues, and are explained."""
    sql = {
        name: (ROOT / "sql" / "pgaq" / name).read_text(encoding="utf-8")
        for name in ("tables/queue.sql", "code/admin.sql", "views/queue.sql")
    }
    table = re.search(r"^CREATE TABLE aq_internal\.queue \(\n(.*?)\n\);", sql["tables/queue.sql"], re.M | re.S)[1].split("\n")
    view = re.search(r"^CREATE VIEW aq\.queues AS(.*?);", sql["views/queue.sql"], re.M | re.S)[1]
    path = SRC / "queue" / "catalog" / "queue_column_list.h"
    rows = [(f"{relative(path)}:{number}", re.split(r",\s*", fields)) for number, _, fields in list_rows(path)]
    if len(rows) != len(table):
        yield f"{relative(path)}: {len(rows)} columns, {len(table)} in sql/pgaq/tables/queue.sql"
    for (where, (name, kind, *of_property)), line in zip(rows, table):
        if not line.startswith(f"\t{name} {COLUMN_TYPES[kind]}"):
            yield f"{where}: {name} {kind} is not the column: {line.strip()}"
        if f"COMMENT ON COLUMN aq_internal.queue.{name} IS" not in sql["tables/queue.sql"]:
            yield f"{where}: no COMMENT ON COLUMN aq_internal.queue.{name}"
        if not of_property:
            continue
        if (of_property[0] == "true") != ("NOT NULL" not in line):
            yield f"{where}: nullable is {of_property[0]}, and the column is: {line.strip()}"
        if of_property[0] != "true" and "DEFAULT" not in line:
            yield f"{where}: the column has no default: {line.strip()}"
        if not re.search(rf"\bq\.{name}\b", view):
            yield f"{where}: aq.queues has no column {name}"
        for function in ("create_queue", "alter_queue"):
            arguments, comment = re.search(
                rf"^CREATE FUNCTION aq\.{function}\((.*?)\)\nRETURNS.*?^COMMENT ON FUNCTION .*? IS\n'(.*?)';$",
                sql["code/admin.sql"],
                re.M | re.S,
            ).groups()
            if function == "alter_queue" and name in ONLY_CREATED:
                continue
            if f"{name} {COLUMN_TYPES[kind]} DEFAULT" not in arguments:
                yield f"{where}: aq.{function} has no argument {name}"
            if function == "create_queue" and not re.search(rf"\b{name}\b", comment):
                yield f"{where}: the comment of aq.{function} does not explain {name}"


def matches(pattern, exempt):
    """(place, match) of the first match in each line of the C files; exempt: which files may have it."""
    for path in c_files():
        if exempt(path):
            continue
        for number, line in enumerate(lines_of(path), 1):
            match = pattern.search(line)
            if match:
                yield f"{relative(path)}:{number}", match


def check_waiting():
    """Nothing waits, spins, owns a lock (but the server's) or brings its own atomics outside base and sync."""
    for where, match in matches(OWN_WAITING, lambda path: part_of(path) in ("base", "sync")):
        if not SERVER_LOCK.search(match.string):
            yield f"{where}: {match[0].rstrip('( ')} belongs into sync"


ENDS_OF_TRANSACTIONS = re.compile(r"\b(Register(?:Xact|SubXact|ResourceRelease)Callback)\b")


def check_transactions():
    """Only base/xact.c is called by the server at the end of a transaction: it has the order of the parts."""
    for where, match in matches(ENDS_OF_TRANSACTIONS, lambda path: path == SRC / "base" / "xact.c"):
        yield f"{where}: {match[1]}: use aq_xact_register"


READS_ANSWERS = re.compile(r"\b(PQ(?:getvalue|getisnull|getlength|ntuples|nfields|fformat|fnumber|ftype|fname|binaryTuples)|libpq-fe\.h)\b")
READERS = {"libpq-fe.h": "link_private.h"}


def check_answers():
    """Only link/link_answer.c reads what other servers answer: it checks all of it."""
    for where, match in matches(READS_ANSWERS, lambda path: False):
        if Path(where.split(":")[0]).name != READERS.get(match[1], "link_answer.c"):
            yield f"{where}: {match[1]}: the answer's shape is part of the request, and aq_link_answer_value reads it"


# what another version of the server calls or writes differently; base has a name for each
DIFFERS = re.compile(
    r"\b(PG_VERSION_NUM|RelationGetPrimaryKeyIndex|pg_attribute_noreturn|index_beginscan|ConditionalXactLockTableWait|pgprocno|MyProcNumber|"
    r"WaitEventExtensionNew|PG_WAIT_EXTENSION|\w+_ownercheck|vac_update_relstats|pgstat_report_vacuum|guc_malloc|guc_free)\b"
)


def check_versions():
    """What depends on the server's version stands in base only."""
    for where, match in matches(DIFFERS, lambda path: part_of(path) == "base"):
        yield f"{where}: {match[1]} depends on the version: use or add a name in base/compat.h"


def check_symbols():
    """What the built library exports begins with aq_ or Aq."""
    library = ROOT / "pgaq.so"
    if not library.exists():
        yield "pgaq.so: not built; run make first"
        return
    output = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        name = line.split()[-1]
        if not SYMBOL_OK.match(name):
            yield f"pgaq.so: exports {name}"


# a function for SQL is declared with its whole name, and so is its name in SQL: grep finds both
C_FUNCTION = re.compile(r"^(?:PG_FUNCTION_INFO_V1|AQ_ROWS)\((\w+)\)", re.M)
IN_SQL = re.compile(r"(?:\bAS '(?:MODULE_PATHNAME|pgaq)',\s*|CALL aq_internal\.make_source\('\w+',\s*)'(\w+)'")


def check_functions():
    """Each C function for SQL is declared once, by its whole name, and each that SQL names is there."""
    declared, named = {}, {}
    for path in c_files():
        for match in C_FUNCTION.finditer(path.read_text(encoding="utf-8")):
            if match[1] in declared:
                yield f"{relative(path)}: {match[1]} is declared in {declared[match[1]]} too"
            declared[match[1]] = relative(path)
    for path in (p for p in sorted((ROOT / "sql").rglob("*.sql")) if "--" not in p.name):
        named.update({match[1]: relative(path) for match in IN_SQL.finditer(path.read_text(encoding="utf-8"))})
    for name in sorted(named.keys() - declared.keys()):
        yield f"{named[name]}: no PG_FUNCTION_INFO_V1({name}) or AQ_ROWS({name})"
    for name in sorted(declared.keys() - named.keys()):
        yield f"{declared[name]}: no SQL function is made of {name}"


# --- slots ---------------------------------------------------------------------

# what slot.h says of Slot, Partition, FrameSub, StreamSub, Stream, by the names that such a thing has
SLOT_FIELDS = (
    (r"(?:\bslot|\bs|slots\[[^]]*\]|slot_at\(.*\))", "state|flags|xid|epoch|open|block|offset|expires_at|session"),
    (
        r"(?:\bpartition|partition_at\([^)]*\))",
        r"reserved|pending|inflight|nretry|ndoubt|nfailed|open|sessions\[[^]]*\]|more_sessions|away_\w+",
    ),
    (r"(?:\bmore|sub_more\(.*\))", r"leased|alone|nleased|ends\[[^]]*\]"),
    (r"(?:\blease|lease_at\(.*\))", "until|receipt"),
    (r"(?:\bframe|frame_of\(.*\))", "lease_end"),
    (r"(?:\bsub|frame_sub\(.*\))", "ready|retry|waiting|doubt|nready|nretry|ndoubt|nwaiting|ntaken|first"),
    (r"(?:\bssub|stream_sub\(.*\))", "hint|ndoubt|ready|away|doubt_change"),
    (r"(?:\bstream|stream_at\([^)]*\))", r"empty\[[^]]*\]"),
)
SLOT_WRITES = re.compile(
    "|".join(
        rf"{name}(?:->|\.)(?:{fields})\s*(?:=(?!=)|[-+|&]=|\+\+|--)|(?:\+\+|--){name}(?:->|\.)(?:{fields})\b"
        for name, fields in SLOT_FIELDS
    )
    + r"|aq_bitmap_(?:set|clear|set_range)\(bitmap_of\("
)
SLOT_WRITERS = {"slot.c", "slot.h", "damage.c"}  # damage.c makes what aq.check() is to find


def check_slots():
    """Only slot.c writes the states of messages and what is counted of them."""
    for where, _ in matches(SLOT_WRITES, lambda path: part_of(path) != "shard" or path.name in SLOT_WRITERS):
        yield f"{where}: use a function of shard/partitions/slot.h"


# --- Python --------------------------------------------------------------------


def imported(path):
    """(line number, name of the module) of each import in a Python file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module


def check_product():
    """The package pgaq does not import pgaq_proof, which is for the tests, and psycopg only in pgaq/db.py."""
    for path in sorted((ROOT / "python" / "pgaq").rglob("*.py")):
        for number, name in imported(path):
            if name.split(".")[0] == "pgaq_proof":
                yield f"{relative(path)}:{number}: {name} is for the tests"
            if name.split(".")[0] == "psycopg" and path.name != "db.py":
                yield f"{relative(path)}:{number}: use pgaq.db instead of {name}"


def check_format():
    """The code is formatted: tools/format mends it, and after a commit tools/format --all."""
    result = subprocess.run([sys.executable, str(ROOT / "tools" / "format"), "--check"], capture_output=True, text=True)
    sys.stderr.write(result.stderr)
    for line in (result.stdout + result.stderr).splitlines() if result.returncode != 0 else ():
        yield f"{line}: run tools/format --all" if (ROOT / line).exists() else line


# --- documentation -----------------------------------------------------------


def markdown_files():
    yield from sorted(ROOT.glob("*.md"))
    for folder in ("docs", "src", "tests", "bench", "python", "sql"):
        yield from sorted(p for p in (ROOT / folder).rglob("*.md") if "/." not in str(p.relative_to(ROOT)))


def anchors(path):
    found = set()
    for line in lines_of(path):
        match = re.match(r"#+ (.*)", line)
        if match:
            text = re.sub(r"[`*]", "", match[1]).strip().lower()
            found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return found


def check_links():
    """Links between the pages lead somewhere."""
    for path in markdown_files():
        fenced = False
        for number, line in enumerate(lines_of(path), 1):
            if line.startswith("```"):
                fenced = not fenced
            if fenced:
                continue
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                goal = (path.parent / name).resolve() if name else path
                if not goal.exists():
                    yield f"{relative(path)}:{number}: {target} does not exist"
                elif anchor and goal.suffix == ".md" and anchor not in anchors(goal):
                    yield f"{relative(path)}:{number}: no heading for {target}"


def check_mentions():
    """Pages that code, comments and hints name are there, and the headings in them: "Divergence" in docs/propagation.md."""
    for folder in ("src", "sql", "python/pgaq", "jms", "tests", "tools"):
        for path in written(ROOT / folder, ".c", ".h", ".sql", ".py", ".java"):
            for heading, name in re.findall(r'(?:\\*"([A-Z][^"\\]*)\\*" in )?\bdocs/([\w-]+\.md)', path.read_text(encoding="utf-8")):
                page = ROOT / "docs" / name
                if not page.exists() or heading and slug(heading) not in anchors(page):
                    yield f"{relative(path)}: there is no {heading or name} in docs/{name}"


def check_columns():
    """Lines of the pages have at most 120 characters, tables and code excepted; a table's rows have the cells of its head."""
    for path in [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG"))]:
        fenced, head = False, None
        for number, line in enumerate(lines_of(path), 1):
            if line.startswith("```"):
                fenced = not fenced
            elif not fenced and len(line) > 120 and not line.startswith("|"):
                yield f"{relative(path)}:{number}: {len(line)} characters"
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1 if not fenced and line.startswith("|") else None
            head = head if head and cells else cells
            if cells != head:
                yield f"{relative(path)}:{number}: {cells} cells, not {head}"


def check_meanings():
    """Each argument in the tables of functions has a meaning: from a line of the COMMENT, or from tools/reference.py."""
    for path in sorted((ROOT / "docs").glob("aq*.md")):
        for number, line in enumerate(lines_of(path), 1):
            if re.match(r"\| `\w+` \| [^|]+ \| (required|`.*`) \| +\|$", line):
                yield f"{relative(path)}:{number}: {line.split('`')[1]} has no meaning"


def check_docs(server=True):
    """The generated tables in docs/ are what the sources and the extension say."""
    command = [sys.executable, str(ROOT / "tools" / "docs.py"), "--check"]
    if not server:
        command.append("--no-server")
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        for line in (result.stdout + result.stderr).splitlines():
            yield line


def check_examples(server=True):
    """The SQL examples of README.md and docs/ run."""
    if not server:
        return
    command = [sys.executable, str(ROOT / "tools" / "docs.py"), "--run"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        for line in (result.stderr + result.stdout).splitlines():
            if not line.startswith(("ok ", "NOTICE:")):  # of a long output, only the beginning is in a summary
                yield line


def texts_of_messages():
    """Patterns of the texts that the extension says: string literals of C and SQL, with % for what is put in."""
    for path in [*c_files(), *sorted(p for p in (ROOT / "sql").rglob("*.sql") if "--" not in p.name)]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".sql":
            texts = re.findall(r"'((?:[^'\n]|'')*)'", text)
        else:
            text = re.sub(r'(?<!\\)"\s*"', "", re.sub(r'(?<!\\)"\s*U?INT64_FORMAT\s*"', "%", text))
            texts = re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)
        for format in texts:
            words = re.split(r"%(?:-?\d*(?:ll|l)?[a-z])?", format.replace('\\"', '"').replace("''", "'"))
            if len("".join(words).split()) > 1:
                yield ".*".join(map(re.escape, words))


def check_problems():
    """Each message that heads a section of docs/problems.md is one that the extension says."""
    known = re.compile("|".join(set(texts_of_messages())))
    for number, line in enumerate(lines_of(ROOT / "docs" / "problems.md"), 1):
        if (match := re.match(r"#+ `(.*)`$", line)) and not known.fullmatch(match[1]):
            yield f"docs/problems.md:{number}: no message has this text"


def check_site():
    """The site of docs/ can be built, and all of its links lead somewhere."""
    command = shutil.which("mkdocs")
    if command is None:
        yield "mkdocs is missing: tools/setup test installs it"
        return
    result = subprocess.run([command, "build", "--strict"], capture_output=True, text=True, cwd=ROOT)
    if result.returncode != 0:
        for line in (result.stdout + result.stderr).splitlines():
            if "INFO" not in line and not line.startswith("  - "):  # lists of pages below an INFO
                yield line


def sql_source():
    """All SQL of the extension, comments left out."""
    text = "\n".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "sql").rglob("*.sql")) if "--" not in p.name)
    return re.sub(r"^\s*--.*$", "", text, flags=re.M)


def definitions(sql):
    """Oracle's names -> words of their definitions: routines, types, domains, views of the packages."""
    found = {}
    for match in re.finditer(r"CREATE (?:FUNCTION|PROCEDURE) ((?:dbms_\w+|sys)\.[\w$]+)\((.*?)\)\s*(?:RETURNS|LANGUAGE)", sql, re.S):
        found.setdefault(match[1], set()).update(re.findall(r"\w+", match[2]))
    for match in re.finditer(r"CREATE (?:TYPE|DOMAIN|VIEW) ((?:dbms_\w+|sys)\.[\w$]+) AS(.*?);", sql, re.S):
        found.setdefault(match[1], set()).update(re.findall(r"\w+", match[2]))
    for match in re.finditer(r"CALL aq_internal\.make_view\('sys', '([\w$#]+)',(.*?)\);", sql, re.S):
        found.setdefault(f"sys.{match[1]}", set()).update(re.findall(r"[\w$#]+", match[2]))
    for match in re.finditer(r"CALL sys\._make_variant\('(\w+)', '(\w+)'", sql):  # the columns of another view
        found[f"sys.{match[1]}"] = found[f"sys.{match[2]}"]
    return found


# areas of the matrix that are fields of a type
RECORDS = {
    "enqueue_options_t": "dbms_aq",
    "dequeue_options_t": "dbms_aq",
    "message_properties_t": "dbms_aq",
    "queue_props_t": "dbms_aqadm",
    "aq$_purge_options_t": "dbms_aqadm",
}


def check_compatibility():
    """The matrix docs/compatibility.tsv does not lie: what works exists, and the test it names speaks of it."""
    found = definitions(sql_source())
    listed = set()
    for number, line in enumerate(lines_of(ROOT / "docs" / "compatibility.tsv")[1:], 2):
        where = f"docs/compatibility.tsv:{number}"
        area, name, parameters, status, note, test = line.split("\t")
        schema = area.split()[-1] if area.startswith(("dbms_", "constants ")) else None
        full = f"{schema}.{name}" if schema else name
        listed.add(full)
        if status not in ("works", "differently", "no effect", "later"):
            yield f"{where}: status {status}"
        if area in RECORDS:
            exists = name in found.get(f"{RECORDS[area]}.{area}", ())
        elif area == "views of a queue table":
            exists = True  # made by dbms_aqadm, not by the extension
        elif area == "packages":
            exists = any(known.startswith(full + ".") for known in found)
        else:
            exists = full in found
        if (status != "later") != exists and not (area in RECORDS and exists):
            yield f"{where}: {full} is {status}, and {'exists' if exists else 'does not exist'}"
        for parameter in parameters.split() if exists else ():
            if parameter not in found[full]:
                yield f"{where}: {full} has no parameter {parameter}"
        if status in ("works", "differently"):
            path = ROOT / "tests" / test
            words = [word for word in re.split(r"<.*?>", name.split(".")[-1]) if word]
            if not test or not path.is_file():
                yield f"{where}: there is no test {test}"
            elif any(word not in path.read_text(encoding="utf-8").lower() for word in words):
                yield f"{where}: {test} does not mention {name}"
        if status == "differently" and not note:
            yield f"{where}: how differently?"
    for full in sorted(found):
        known = full in listed or full.split(".")[1] in RECORDS or full.split(".")[1].startswith("_")
        if not known and (full.startswith(("dbms_", "sys.x$")) or "CREATE VIEW " + full in sql_views()):
            yield f"docs/compatibility.tsv: no row for {full}"


QUEUE_PACKAGES = ("dbms_aq", "dbms_aqadm", "dbms_aqmigtool", "dbms_aqelm", "dbms_transform")


def check_oracle_names():
    """Each name of Oracle AQ in tests/oracle_names.tsv is what the list says, and has a row in docs/compatibility.tsv that says the same."""
    found = definitions(sql_source())
    rows = {}
    for line in lines_of(ROOT / "docs" / "compatibility.tsv")[1:]:
        area, name, _, status, note, _ = line.split("\t")
        if area in ("views", "packages", *QUEUE_PACKAGES) and not note.startswith("not in Oracle"):
            full = f"{area}.{name}" if area.startswith("dbms_") else name
            rows[full] = "absent" if status == "later" else "refused" if note.startswith("refused") else "there"
    schemas = {full.split(".")[0] for full in found}
    listed = set()
    for number, line in enumerate(lines_of(ROOT / "tests" / "oracle_names.tsv")[1:], 2):
        where = f"tests/oracle_names.tsv:{number}"
        name, state = line.split("\t")
        if state not in ("there", "refused", "absent"):
            yield f"{where}: state {state}"
        if rows.get(name) != state:
            yield f"{where}: {name} is {state}, and {rows.get(name, 'missing')} in docs/compatibility.tsv"
        if (name in found or name in schemas) != (state != "absent"):
            yield f"{where}: {name} is {state}, and {'exists' if name in found or name in schemas else 'does not exist'}"
        listed.add(name)
    for name in sorted(set(rows) - listed):
        yield f"docs/compatibility.tsv: {name} is not in tests/oracle_names.tsv"


def sql_views():
    """The views that stand for Oracle's queue views."""
    return "\n".join(
        (ROOT / "sql" / "oracle" / "views" / name).read_text(encoding="utf-8") for name in ("dictionary.sql", "queue_stats.sql")
    )


def check_drivers():
    """Every point of tests/drivers.tsv has its name in the test that shows it, and every name in brackets is a point."""
    points = [line.split("\t") for line in lines_of(ROOT / "tests" / "drivers.tsv")[1:]]
    for name, _, _, test in points:
        path = ROOT / "tests" / test
        if not path.is_file() or f"[{name}]" not in path.read_text(encoding="utf-8"):
            yield f"tests/drivers.tsv: tests/{test} does not show [{name}]"
    shown = re.findall(r"^-- ((?:\[[a-z ]+\] )+)", (ROOT / "tests/sql/dbms_drivers.sql").read_text(encoding="utf-8"), re.M)
    for name in sorted(set(re.findall(r"\[([a-z ]+)\]", "".join(shown))) - {point[0] for point in points}):
        yield f"tests/sql/dbms_drivers.sql: [{name}] is not in tests/drivers.tsv"


# --- isolation specs -----------------------------------------------------------


def permutations_of(spec):
    """The permutations of a spec, each a list of steps, without markers of what they wait for."""
    text = re.sub(r"#.*", "", spec.read_text(encoding="utf-8"))
    lists = re.findall(r"^permutation((?:\s+(?!permutation)\S+)+)", text, re.M)
    return [re.sub(r"\([^)]*\)", "", steps).split() for steps in lists]


def check_pairs():
    """Every step of an isolation spec is used; every pair of the operations in tests/README.md has a permutation."""
    specs = ROOT / "tests" / "isolation" / "specs"
    for spec in sorted(specs.glob("*.spec")):
        used = {step for steps in permutations_of(spec) for step in steps}
        for step in re.findall(r"^step\s+(\w+)", spec.read_text(encoding="utf-8"), re.M):
            if used and step not in used:
                yield f"{relative(spec)}: no permutation uses step {step}"
    section = (ROOT / "tests" / "README.md").read_text(encoding="utf-8").split("## Pairs of operations")[1].split("\n## ")[0]
    operations = re.findall(r"^\| (\w+) \|", section, re.M)[1:]
    spec = specs / "all-pairs.spec"
    shown = {tuple(steps[:2]) for steps in permutations_of(spec)}
    for first in operations:
        for second in operations:
            if (f"{first}1", f"{second}2") not in shown:
                yield f"{relative(spec)}: no permutation begins with {first}1 {second}2"
    for schedule in ("isolation/schedule", "queue_tables/isolation/schedule"):
        if "test: all-pairs" not in lines_of(ROOT / "tests" / schedule):
            yield f"tests/{schedule}: all-pairs is missing"


CHECKS = [
    check_layers,
    check_parts,
    check_circles,
    check_folders,
    check_prefixes,
    check_sizes,
    check_packages,
    check_java,
    check_words,
    check_stems,
    check_guards,
    check_comments,
    check_lists,
    check_queue_columns,
    check_waiting,
    check_transactions,
    check_answers,
    check_slots,
    check_versions,
    check_symbols,
    check_functions,
    check_compatibility,
    check_oracle_names,
    check_drivers,
    check_pairs,
    check_product,
    check_format,
    check_links,
    check_mentions,
    check_columns,
    check_meanings,
    check_lengths,
    check_workflow,
    check_problems,
    check_site,
    check_version,
    check_docs,
    check_examples,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-server", action="store_true", help="leave out what needs a running server")
    parser.add_argument("only", nargs="*", help="names of checks, e.g. layers lists")
    options = parser.parse_args()
    passed = failed = 0
    for check in CHECKS:
        name = check.__name__.removeprefix("check_")
        if options.only and name not in options.only:
            continue
        problems = list(check(not options.no_server) if check in (check_docs, check_examples) else check())
        print(f"{'not ok' if problems else 'ok    '}  {name}: {check.__doc__.splitlines()[0]}")
        for problem in problems:
            print(f"        {problem}")
        passed += not problems
        failed += bool(problems)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
