#!/usr/bin/env python3
"""The generated tables of the documentation, and the examples in it.

    tools/docs.py               rewrite the generated tables, docs/llms.txt and the man page python/pgaq.1
    tools/docs.py --check       compare them instead; exit 1 when one differs
    tools/docs.py --run [FILE]  execute the SQL examples of README.md and docs/*.md
    --write                     with --run: write what they print below them
    --no-server                 only tables that come from files of the source tree
    --dsn CONNSTRING            use this server instead of starting a private one

Run it as tools/python tools/docs.py: the private server needs the package in python/.

A generated table stands between <!-- begin KEY --> and <!-- end KEY -->.  KEY is
"errors", "oracle-errors", "waits events|latches|mutexes|locations", "parameters GROUP", "function NAME",
"functions" (an index of those on the page), "views GROUP", "view-index PAGE GROUP", "benchmark", "leases",
"command NAME", "metrics" or "compatibility AREA".

Examples: every fence ```sql of a file is executed in order by one psql session in
a database of its own.  ```sql no-run is left out; ```sql error must end in an error.
On some pages (OUTPUTS) each example is followed by a fence ```output with what it prints.  Such
a block may differ from what is printed now in ids, times and fractions.  What ```sql varies prints
depends on how fast the machine is, so only that it prints something is checked.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent))  # left out where Python runs in safe mode
import commands
import reference
from mkdocs_hooks import groups
from tables import folded, table

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"(<!-- begin (.+?) -->\n)(.*?)(<!-- end \2 -->)", re.S)


# --- a server ----------------------------------------------------------------


class Server:
    """Asks questions by psql; nothing but the server's own client is needed."""

    def __init__(self, dsn):
        self.dsn = dsn
        self.psql = os.environ.get("PSQL", "psql")

    def rows(self, query):
        text = self.call(
            ["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", f"SELECT coalesce(json_agg(q), '[]') FROM ({query}) q"], check=True
        ).stdout
        return json.loads(text)

    def call(self, arguments, database=None, check=False, **more):
        dsn = self.dsn + (f" dbname={database}" if database else "")
        return subprocess.run([self.psql, "-d", dsn, *arguments], check=check, stdout=subprocess.PIPE, text=True, **more)

    def execute(self, statement, database=None):
        self.call(["-Xq", "-v", "ON_ERROR_STOP=1", "-c", statement], database=database, check=True)


@contextlib.contextmanager
def private_server(dsn):
    """The server of the given connection string, or a new private one."""
    if dsn:
        yield Server(dsn)
        return
    sys.path.insert(0, str(ROOT / "python"))
    from pgaq import places, server as control

    with control.Server.temporary("docs", settings={"max_prepared_transactions": 10}) as running:
        os.environ.setdefault("PSQL", places.program("psql"))
        yield Server(running.conninfo("postgres"))


# --- tables from list headers --------------------------------------------------


def list_rows(name):
    """The rows of the X-list src/.../<name>.h: each a list of its fields, strings joined and unquoted."""
    [path] = (ROOT / "src").rglob(f"{name}.h")
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    for match in re.finditer(r"^X\((.*?)\)\s*$", text, re.M | re.S):
        fields, depth, start = [], 0, 0
        body = re.sub(r'"\s*\n?\s*"', "", match[1])
        quoted = False
        for at, char in enumerate(body):
            if char == '"' and body[at - 1] != "\\":
                quoted = not quoted
            elif not quoted and char in "()":
                depth += 1 if char == "(" else -1
            elif not quoted and depth == 0 and char == ",":
                fields.append(body[start:at])
                start = at + 1
        fields.append(body[start:])
        yield [re.sub(r'^"|"$', "", f.strip()).replace('\\"', '"') for f in fields]


def errors():
    """By SQLSTATE; the first error of each has the anchor.  Above the table, a link to each."""
    rows, anchored = [], set()
    for sqlstate, code, text in sorted((row[2], row[1], row[4]) for row in list_rows("errors_list") if row[2]):
        anchor = "" if sqlstate in anchored else f'<a id="{sqlstate.lower()}"></a>'
        anchored.add(sqlstate)
        rows.append((f"{anchor}`{sqlstate}`", code, text))
    links = " ".join(f"[{sqlstate}](#{sqlstate.lower()})" for sqlstate in sorted(anchored))
    return folded(links) + "\n\n" + table(("SQLSTATE", "code", "meaning"), rows)


def oracle_errors():
    rows = [
        (f"`{code}`", f"ORA-{int(ora):05d}" if int(ora) else "", f"`{sqlstate}`" if sqlstate else "", text)
        for _, code, sqlstate, ora, text in list_rows("errors_list")
    ]
    return table(("SQLSTATE", "Oracle's number", "in schema aq", "meaning"), rows)


def wait_events():
    classes = {row[0]: row[1] for row in list_rows("class_list")}
    rows = [
        (f"`{name}`", classes[kind], ", ".join(p for p in (p1, p2, p3) if p), text)
        for _, name, kind, p1, p2, p3, text in list_rows("event_list")
    ]
    return table(("event", "class", "P1, P2, P3", "what is waited for"), rows)


def latches():
    events = {row[0]: row[1] for row in list_rows("event_list")}
    rows = [
        (f"`{name}`", level, "yes" if children == "true" else "", f"`{events[event]}`", text)
        for _, name, level, event, children, text in list_rows("latch_list")
    ]
    return table(("latch", "level", "children", "wait event", "protects"), rows)


def mutexes():
    events = {row[0]: row[1] for row in list_rows("event_list")}
    rows = [
        (f"`{name}`", f"`{events[exclusive]}`", f"`{events[shared]}`", text) for _, name, exclusive, shared, text in list_rows("mutex_list")
    ]
    return table(("mutex type", "event, exclusive", "event, shared", "protects"), rows)


def locations():
    rows = [(number, f"`{name}`") for number, (_, name) in enumerate(list_rows("location_list"), 1)]
    half = (len(rows) + 1) // 2
    rows += [("", "")] * (2 * half - len(rows))
    return table(("number", "location", "number", "location"), [a + b for a, b in zip(rows[:half], rows[half:])])


STAT_CLASSES = {"1": "user", "2": "redo", "4": "enqueue", "8": "cache", "64": "SQL", "128": "debug"}


def statistics():
    rows = [(f"`{name}`", STAT_CLASSES[kind], text) for _, name, kind, text in [*list_rows("stat_list"), *list_rows("server_stat_list")]]
    return table(("statistic", "class", "counts"), rows)


def times():
    rows = [(f"`{name} elapsed time`, `{name} cpu time`", text) for _, name, text in list_rows("time_list")]
    return table(("lines", "time of"), rows)


def settings():
    rows = [
        (f"`{name}`", f"`{value}`", "the session's" if of_text == "true" else f"`{value}`")
        for _, name, value, _, of_text in list_rows("setting_list")
    ]
    return table(("setting", "in rules and transformations", "while a payload's text is read"), rows)


WAITS = {"statistics": statistics, "times": times, "events": wait_events, "latches": latches, "mutexes": mutexes, "locations": locations}


# --- tables from the extension -------------------------------------------------

PARAMETERS = """
SELECT name, vartype, boot_val, unit, min_val, max_val, enumvals, context, short_desc, extra_desc
FROM pg_settings WHERE name LIKE 'pgaq.%' AND name <> 'pgaq.test_point' ORDER BY name"""

INT_MAX = 2**31 - 1

# all others are in the group "behavior"
GROUPS = {
    "sizing": r"pgaq\.(ash_size|max_\w+|message_cache_size|row_cache_rows|partition_size|default_shards|role_\w+|trace_rows|"
    r"notifiers|immediate_helpers|buffered_message_limit)",
    "experiments": r"pgaq\.(latch_\w+|mutex_\w+|wait_yield_\w+|high_priority|spin_count|listen_wakeup|session_pins|"
    r"row_cache_serialization|row_cache_clone_sleeps|hot_object_copies)",
}

CONTEXTS = {
    "postmaster": "server start",
    "sighup": "configuration reload",
    "backend": "connection start",
    "superuser-backend": "connection start (superuser)",
    "superuser": "superuser, at any time",
    "user": "any role, at any time",
    "internal": "read only",
}


def with_unit(value, unit, vartype):
    if value in (None, ""):
        return "(empty)" if vartype in ("string", "enum") else ""
    if unit == "kB" and vartype == "integer" and int(value) >= 1024:
        number = int(value)
        for name in ("kB", "MB", "GB", "TB"):
            if number < 1024 or number % 1024:
                return f"{number} {name}"
            number //= 1024
    if unit == "ms" and vartype == "integer" and int(value) >= 1000 and int(value) % 1000 == 0:
        return f"{int(value) // 1000} s"
    return f"{value} {unit}" if unit else str(value)


def parameters(server, group):
    rows = []
    for p in server.rows(PARAMETERS):
        if group != next((name for name, pattern in GROUPS.items() if re.fullmatch(pattern, p["name"])), "behavior"):
            continue
        if p["enumvals"]:
            allowed = ", ".join(p["enumvals"])
        elif p["min_val"] is not None:
            least = with_unit(p["min_val"], p["unit"], p["vartype"])
            most = with_unit(p["max_val"], p["unit"], p["vartype"])
            allowed = f"from {least}" if float(p["max_val"]) >= INT_MAX else f"{least} to {most}"
        else:
            allowed = {"bool": "on, off"}.get(p["vartype"], "")
        text = " ".join(t for t in (p["short_desc"], p["extra_desc"]) if t)
        rows.append(
            (f"`{p['name']}`", with_unit(p["boot_val"], p["unit"], p["vartype"]), allowed, CONTEXTS.get(p["context"], p["context"]), text)
        )
    return table(("parameter", "default", "allowed", "changed at", "meaning"), rows)


# --- the benchmark -------------------------------------------------------------


def published_results():
    """The runs to show, newest first: the newest committed comparison of each shape, and the newest of each with
    contestants that the former lacks.  In a tree without git, of those that are there."""
    folder = ROOT / "bench/results"
    listed = subprocess.run(["git", "-C", str(folder), "ls-files", "*.json"], capture_output=True, text=True)
    names = listed.stdout.split() if listed.returncode == 0 else [p.name for p in folder.glob("*.json")]
    runs, shown = {}, {}
    for name in sorted(names, reverse=True):
        result = json.loads((folder / name).read_text(encoding="utf-8"))
        contestants = set(result.get("contestants", ()))
        seen = shown.setdefault(result.get("shape", {}).get("name"), set())
        if len(contestants) > 1 and not contestants <= seen:  # alone it was a trial; long runs have none
            seen |= contestants
            runs.setdefault((result["date"], result["commit"]), []).append(result)
    return list(runs.values())


def microseconds(value):
    if value is None:
        return ""
    return f"{value / 1e6:.2f} s" if value >= 1e6 else f"{value / 1e3:.2f} ms"


def shape_text(shape):
    if shape["rate"]:
        return f"{shape['rate']:,} messages/s offered, {shape['batch']} per transaction, consumers wait"
    what = f"topic, {shape['subscribers']} subscribers" if shape["kind"] == "topic" else "queue"
    calls = " (single calls)" if shape["single"] else ""
    takers = shape.get("consumer_sessions") or shape["sessions"]
    takes = f", up to {shape['take']} per dequeue" if shape.get("take") else ""
    return f"{what}, {shape['batch']} per transaction{calls}{takes}, {shape['sessions']}+{takers} sessions"


def benchmark():
    runs = published_results()
    if not runs:
        return "No result is published yet. `bench/run` measures on your machine and prints the table.\n"
    return "\n".join(benchmark_run(results) for results in runs)


def benchmark_run(results):
    results.sort(
        key=lambda r: (
            bool(r["shape"]["rate"]),
            r["shape"]["kind"],
            r["shape"]["single"],
            r["shape"].get("take") or 0,
            r["shape"]["batch"],
            r["shape"]["sessions"],
        )
    )
    rows = []
    for result in results:
        ours = result["contestants"].get("pgaq", {}).get("median", {}).get("delivered")
        for number, contestant in enumerate(result["contestants"].values()):
            m = contestant["median"]
            ratio = f"{ours / m['delivered']:.2f}" if ours and m["delivered"] else ""
            rows.append(
                (
                    shape_text(result["shape"]) if number == 0 else "",
                    contestant["title"],
                    f"{m['enqueued']:,.0f}",
                    f"{m['delivered']:,.0f}",
                    ratio,
                    microseconds(m["p50"]),
                    microseconds(m["p99"]),
                    f"{m['cpu_us_per_message']:.1f} µs",
                    f"{m['wal_per_message']:,.0f} B",
                )
            )
    about = results[0]
    day = f"{about['date'][:4]}-{about['date'][4:6]}-{about['date'][6:8]}"
    load = f"; {about['cpus_busy_before']:.2f} processors were busy before the run" if about["cpus_busy_before"] > 0.1 else ""
    text = (
        f"Measured {day} at commit {about['commit']}, {about['machine']['cpus']} processors "
        f"({about['machine']['cpu_model']}), {about['server'].split(' (')[0]}, clients on the same machine{load}. "
        f"Medians of rounds of {about['seconds']:g} s."
    )
    head = ("shape", "", "enqueued/s", "delivered/s", "pgaq is x times", "p50", "p99", "server CPU per message", "WAL per message")
    return folded(text) + "\n\n" + table(head, rows)


LEASE_ROWS = [
    ("cpu_10", "plain", "dequeue of 10"),
    ("cpu_10", "one", "acknowledge 10 and dequeue the next 10 with a lease, in one statement"),
    ("cpu_10", "two", "the same in two statements, and two transactions"),
    ("cpu_10", "running", "in one statement, while {running:,} other leases run"),
    ("cpu_1000", "take", "dequeue of 1,000"),
    ("cpu_1000", "lease", "dequeue of 1,000 with a lease"),
    ("cpu_1000", "acknowledge", "1,000 acknowledgements in one call"),
]


def leases():
    """The newest committed result of bench/leases; in a tree without git, the newest that is there."""
    folder = ROOT / "bench/results"
    listed = subprocess.run(["git", "-C", str(folder), "ls-files", "*-leases.json"], capture_output=True, text=True)
    names = listed.stdout.split() if listed.returncode == 0 else [p.name for p in folder.glob("*-leases.json")]
    if not names:
        return "No result is published yet. `bench/leases` measures on your machine.\n"
    about = json.loads((folder / max(names)).read_text(encoding="utf-8"))
    day = f"{about['date'][:4]}-{about['date'][4:6]}-{about['date'][6:8]}"
    load = f"; {about['cpus_busy_before']:.2f} processors were busy before the run" if about["cpus_busy_before"] > 0.1 else ""
    rounds = max(len(values) for values in about["cpu_10"].values())
    said = (
        f"Measured {day} at commit {about['commit']}, {about['machine']['cpus']} processors ({about['machine']['cpu_model']}), "
        f"{about['server'].split(' (')[0]}, clients on the same machine{load}. Medians of {rounds} rounds."
    )
    parts = [folded(said) + "\n"]
    rows = []
    for part, name, title in LEASE_ROWS:
        if name in about.get(part, {}):
            values = about[part][name]
            rows.append((title.format(**about), f"{median(values):.2f} µs", f"{min(values):.2f} to {max(values):.2f}"))
    parts.append(table(("", "server CPU per message", "rounds"), rows))
    rows = []
    for name, played in about.get("contest", {}).items():
        middle = {key: median(r[key] for r in played) for key in ("enqueued", "delivered", "cpu_us_per_message", "wal_per_message")}
        rows.append(
            (
                about["titles"][name],
                f"{middle['enqueued']:,.0f}",
                f"{middle['delivered']:,.0f}",
                f"{middle['delivered'] / median(about['rates']['vt']):.2f}",
                f"{middle['cpu_us_per_message']:.1f} µs",
                f"{middle['wal_per_message']:,.0f} B",
            )
        )
    parts.append(
        table(
            (
                f"{about['sessions']}+{about['sessions']} sessions, 10 per call",
                "enqueued/s",
                "delivered/s",
                "of UPDATE vt, DELETE",
                "server CPU per message",
                "WAL per message",
            ),
            rows,
        )
    )
    parts.append(
        table(
            ("goal", "wanted", "measured", ""),
            [(c["what"], c["wanted"], c["measured"], "reached" if c["ok"] else "missed") for c in about["claims"]],
        )
    )
    return "\n".join(parts)


# --- rewriting -----------------------------------------------------------------


class Generator:
    def __init__(self, server):
        self.server = server
        if server:
            self.functions, self.relations = reference.Functions(server), reference.Relations(server)
            texts = {path.name: path.read_text(encoding="utf-8") for path in pages()}
            self.places = reference.Places(self.functions, self.relations, texts)

    def content(self, key, name, page):
        """The text for a key on the page of this name, or None where it needs the server that we were told not to use."""
        kind, _, rest = key.partition(" ")
        if kind == "errors":
            return errors()
        if kind == "oracle-errors":
            return oracle_errors()
        if kind == "waits":
            return WAITS[rest]()
        if kind == "settings":
            return settings()
        if kind == "benchmark":
            return benchmark()
        if kind == "leases":
            return leases()
        if kind == "compatibility":
            return compatibility(rest)
        if kind == "command":
            return commands.content(rest)
        if kind == "metrics":
            return metrics()
        if not self.server:
            return None
        if kind == "parameters":
            return parameters(self.server, rest)
        if kind == "deprecated":
            return reference.deprecated(self.server)
        if kind == "function":
            return self.functions.text(rest, self.places.linked(name))
        if kind == "functions":
            return reference.function_index(self.functions, page)
        if kind == "views":
            return self.relations.text(rest, self.places.linked(name))
        if kind == "view-index":
            return self.relations.index(*reversed(rest.split(" ", 1)))
        raise KeyError(key)

    def page(self, name, text):
        def replace(match):
            new = self.content(match[2], name, text)
            return match[0] if new is None else f"{match[1]}\n{new}\n{match[4]}"

        return BLOCK.sub(replace, text)


STATUSES = {"later": "not supported"}


def compatibility(area):
    """The rows of docs/compatibility.tsv of one area."""
    lines = ["| name | status | remark | shown by |", "|---|---|---|---|"]
    for line in (DOCS / "compatibility.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        found, name, _, status, note, test = line.split("\t")
        if found == area:
            name = name.replace("<", "&lt;")
            shown = f"[{test}](../tests/{test})" if test else ""
            lines.append(f"| `{name}` | {STATUSES.get(status, status)} | {note} | {shown} |".replace("`&lt;", "`<"))
    return "\n".join(lines) + "\n"


def metrics():
    """What pgaq metrics exports."""
    sys.path.insert(0, str(ROOT / "python"))
    from pgaq.metrics.families import FAMILIES

    rows = [f"| `{each.name}` | {each.kind} | {', '.join(f'`{label}`' for label in each.labels)} | {each.text} |" for each in FAMILIES]
    return "\n".join(["| metric | type | labels | meaning |", "|---|---|---|---|", *rows]) + "\n"


def pages():
    return [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def missing(generator):
    """Functions of aq, and groups of views, without a place in the reference."""
    text = "".join(page.read_text(encoding="utf-8") for page in pages())
    keys = [f"views {group}" for group in reference.GROUPS]
    if generator.server:
        keys += [f"function {name}" for name in generator.functions.by_name]
    for key in keys:
        if f"<!-- begin {key} -->" not in text:
            yield f"docs: {key} is described on no page"
    yield from commands.missing(text)


def created_twice():
    """Queues that two pages create which a reader may try one after the other, in one database."""
    seen = {}
    for page in (page for group in ("Start", "Jobs", "Topics") for page in groups()[group] if page != "drivers.md"):
        for _, words, text, _ in examples(DOCS / page):
            for name in re.findall(r"aq\.create_queue\('(\w+)'(?!.*if_not_exists)", text if "no-run" not in words else ""):
                if seen.setdefault(name, page) != page:
                    yield f"docs/{page}: the queue {name} is created in {seen[name]}, too"


def llms():
    """docs/llms.txt (llmstxt.org): the pages of docs/README.md, for language models."""
    lines = ["# pgaq", "", "> Advanced Queuing for PostgreSQL: message queues and topics inside the database, an extension in C."]
    for line in (DOCS / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            lines += ["", line, ""]
        elif match := re.match(r"\| \[.*?\]\((\S+\.md)\) \| .* \| (.*) \|$", line):
            title = (DOCS / match[1]).read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")
            lines.append(f"- [{title}]({match[1]}): {match[2]}")
    return "\n".join(lines) + "\n"


WHOLE = {DOCS / "llms.txt": llms, ROOT / "python/pgaq.1": commands.man}  # nothing in them is written by hand


def write(generator, check):
    problems = [*missing(generator), *created_twice()]
    for path in [*pages(), *WHOLE]:
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        new = WHOLE[path]() if path in WHOLE else generator.page(path.name, old)
        if old != new and check:
            problems.append(f"{path.relative_to(ROOT)}: out of date; run tools/docs.py")
        elif old != new:
            path.write_text(new, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: rewritten")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


# --- running the examples --------------------------------------------------------

# pages on which the output of each example follows it
OUTPUTS = {"start.md", "jobs.md", "moving.md", "topics.md", "schedules.md", "cheatsheet.md"}

# what differs from run to run
MASKS = [
    (re.compile(pattern), word)
    for pattern, word in (
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
        (r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d(:\d\d)?)?", "TIME"),
        (r"\d+\.\d+|\d{6,}", "NUMBER"),
        (r"[ -]+", " "),
    )
]  # columns are as wide as the values


def examples(path):
    """(line number, words after sql, text, number of the last line) of each SQL fence."""
    inside = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            if inside is not None:
                if inside[1][:1] == ["sql"]:
                    yield inside[0], inside[1][1:], "\n".join(inside[2]), number
                inside = None
            else:
                inside = (number, line[3:].split(), [])
        elif inside is not None:
            inside[2].append(line)


def script(path):
    """One psql script of all examples of a page."""
    lines, count = ["\\set ON_ERROR_STOP 1", "\\set QUIET on", "\\pset pager off", "\\pset null (null)", "\\timing off"], 0
    for number, words, text, _ in examples(path):
        if "no-run" in words:
            continue
        count += 1
        lines.append(f"\\warn ---- {path.relative_to(ROOT)}:{number}")
        if "error" in words:
            lines += [
                "\\set ON_ERROR_STOP 0",
                text,
                "\\set example_failed :ERROR",
                "\\set ON_ERROR_STOP 1",
                "\\if :example_failed",
                "\\else",
                "DO $$BEGIN RAISE 'the example should fail'; END$$;",
                "\\endif",
            ]
        else:
            lines.append(text)
    return "\n".join(lines) + "\n", count


def printed(output):
    """What each example of a page has printed, by its line number; not the empty results of functions that return void."""
    parts = re.split(r"^---- .*:(\d+)\n", output, flags=re.M)
    found = {}
    for number, text in zip(parts[1::2], parts[2::2]):
        text = re.sub(r"^psql:<stdin>:\d+: ", "", text, flags=re.M)
        text = re.sub(r"^ *\w+ *\n-+\n *\n\(1 row\)\n", "", text, flags=re.M)
        text = re.sub(r"\n{2,}", "\n\n", re.sub(r" +$", "", text, flags=re.M))
        found[int(number)] = text.strip("\n")
    return found


def masked(text):
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


def with_outputs(path, outputs):
    """The page with a block below each example that printed something.  A block that still holds stays as it is."""
    lines, new, at = path.read_text(encoding="utf-8").split("\n"), [], 0
    for number, words, _, last in examples(path):
        new, at, old = new + lines[at:last], last, ""
        if lines[at] == "```output":
            end = lines.index("```", at)
            old, at = "\n".join(lines[at + 1 : end]), end + 1
        text = outputs.get(number, "")
        if masked(text) == masked(old) or "varies" in words and text and old:
            text = old
        if text:
            new += ["```output", text, "```"]
    return "\n".join(new + lines[at:])


def check_outputs(path, output, rewrite):
    """False when a block of output is out of date."""
    if path.name not in OUTPUTS or path.parent != DOCS:
        return True
    new = with_outputs(path, printed(output))
    if new == path.read_text(encoding="utf-8"):
        return True
    if rewrite:
        path.write_text(new, encoding="utf-8")
    else:
        print(f"{path.relative_to(ROOT)}: the examples print something else; run tools/docs.py --run --write and read it")
    return rewrite


@contextlib.contextmanager
def template(server):
    """A database with the extensions; those of the pages are copies of it, which takes a tenth of the time."""
    drop = "DROP DATABASE IF EXISTS docs_template"
    server.execute(drop)
    server.execute("CREATE DATABASE docs_template")
    server.execute("CREATE EXTENSION pgaq_oracle CASCADE", database="docs_template")
    server.execute("ALTER DATABASE docs_template ALLOW_CONNECTIONS false")  # a session there would be in the way of a copy
    try:
        yield "docs_template"
    finally:
        server.execute(drop)


def run(server, files, options):
    with template(server) as extended:
        return run_pages(server, extended, files, options)


def run_pages(server, extended, files, options):
    passed = failed = 0
    for path in files or pages():
        text, count = script(path)
        if not count:
            continue
        database = "docs_" + re.sub(r"\W", "_", path.stem.lower())
        server.execute(f"DROP DATABASE IF EXISTS {database}")
        # a page that creates the extension itself begins without one
        server.execute(f"CREATE DATABASE {database} TEMPLATE {'template1' if 'CREATE EXTENSION' in text.upper() else extended}")
        result = server.call(
            ["-X"], database=database, input=text, stderr=subprocess.STDOUT, timeout=300, env={**os.environ, "PGTZ": "UTC"}
        )
        ok = result.returncode == 0 and check_outputs(path, result.stdout, options.write)
        print(f"{'ok    ' if ok else 'not ok'}  {path.relative_to(ROOT)}: {count} examples")
        if options.verbose or not ok:
            print(result.stdout)
        passed += ok
        failed += not ok
        server.execute(f"DROP DATABASE {database}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    parser.add_argument("--run", action="store_true", help="execute the examples")
    parser.add_argument("--write", action="store_true", help="with --run: write the examples' output into the pages")
    parser.add_argument("--no-server", action="store_true", help="only what needs no server")
    parser.add_argument("--dsn", default=os.environ.get("PGAQ_DOCS_DSN"), help="server to use")
    parser.add_argument("--verbose", action="store_true", help="print the examples' output")
    parser.add_argument("files", nargs="*", type=lambda name: Path(name).resolve(), help="with --run: only these")
    options = parser.parse_args()

    if options.no_server:
        return write(Generator(None), options.check)
    with private_server(options.dsn) as server:
        if options.run:
            return run(server, options.files, options)
        server.execute("CREATE EXTENSION IF NOT EXISTS pgaq_lab CASCADE; CREATE EXTENSION IF NOT EXISTS pgaq_oracle")
        return write(Generator(server), options.check)


if __name__ == "__main__":
    sys.exit(main())
