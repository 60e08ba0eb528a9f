"""Functions and views of the extension, from the comments that they have there."""

import re

from tables import folded, sentence, slug, table, type_name

FUNCTIONS = """
SELECT p.oid, p.proname AS name, p.pronamespace::regnamespace::text AS schema, p.prokind AS kind,
  pg_get_function_result(p.oid) AS result, obj_description(p.oid, 'pg_proc') AS comment,
  (SELECT json_agg(json_build_object('name', a.name, 'type', format_type(a.type, NULL), 'mode', a.mode,
     'initial', CASE WHEN a.mode IN ('i', 'b') THEN pg_get_function_arg_default(p.oid, a.input::int) END) ORDER BY n)
   FROM (SELECT n, t AS type, p.proargnames[n] AS name, coalesce(p.proargmodes[n], 'i') AS mode,
           count(*) FILTER (WHERE coalesce(p.proargmodes[n], 'i') IN ('i', 'b')) OVER (ORDER BY n) AS input
         FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS u(t, n)) a) AS arguments
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE p.pronamespace IN ('aq'::regnamespace, 'aq_jms'::regnamespace, 'aq_lab'::regnamespace) AND p.proname NOT LIKE '\\_%'
  AND obj_description(p.oid, 'pg_proc') NOT LIKE 'Deprecated%' ORDER BY p.oid"""

DEPRECATED = """
SELECT DISTINCT 'aq.' || p.proname AS name, substring(obj_description(p.oid, 'pg_proc') FROM 'use (.*)\\.$') AS instead
FROM pg_proc p WHERE p.pronamespace = 'aq'::regnamespace AND obj_description(p.oid, 'pg_proc') LIKE 'Deprecated%' ORDER BY 1"""

# arguments that mean the same wherever a comment says nothing about them
GENERAL = {
    "queue_name": "name of the queue",
    "queue_names": "names of queues",
    "queue_table": "name of the queue table",
    "consumer": "name of the consumer",
    "consumers": "names of consumers",
    "schedule_name": "name of the schedule",
    "comment": "a text that the views show",
    "payload": "the payload",
    "msgid": "id of the message",
    "msgids": "ids of the messages",
    "relative_msgid": "id of the message before which to put it",
    "condition": "only messages that meet it: see [conditions](conditions.md)",
    "max_messages": "the most messages to take",
    "retry_delay": "delay after the first failed attempt",
    "retry_delay_factor": "multiplies the delay after each further failed attempt",
    "retry_jitter": "largest random addition to the delay, as a fraction of it",
    "retention": "time for which consumed messages remain visible",
    "lease": "time of the lease",
    "receipt": "the receipt of the dequeue",
    "receipts": "the receipts of the dequeues",
    "destination": "the queue to which messages are moved, as in aq.create_propagation",
    "message": "the message",
    "messages": "the messages, in binary form",
    "body": "the body",
    "name": "the name",
    "value": "the value",
    "timeout": "an interval with a unit; null or negative: forever",
    "payload_type": "jsonb, text, bytea, xml or a composite type",
    "multiple_consumers": "true makes a topic",
    "enqueue": "false leaves enqueue as it is",
    "dequeue": "false leaves dequeue as it is",
    "registration_id": "number of the registration",
    "registration_ids": "numbers of registrations",
    "notification": "the notification",
    "max_notifications": "the most notifications to take",
    "baseline_name": "name of the baseline",
    "first_snap_id": "number of the first snapshot",
    "last_snap_id": "number of the last snapshot",
    "begin_snap": "number of the snapshot at the beginning",
    "end_snap": "number of the snapshot at the end",
    "begin_snap_1": "snapshot at the beginning of the first interval",
    "end_snap_1": "snapshot at its end",
    "begin_snap_2": "snapshot at the beginning of the second interval",
    "end_snap_2": "snapshot at its end",
    "begin_time": "beginning of the time to report on",
    "end_time": "its end",
}

# functions whose other arguments mean what they mean in another one
SAME = {
    "alter_queue": "create_queue",
    "alter_schedule": "schedule",
    "alter_subscriber": "subscribe",
    "alter_propagation": "create_propagation",
    "browse": "dequeue",
    "dequeue_full": "dequeue",
    "enqueue_array": "enqueue",
    "enqueue_unique": "enqueue",
    "receive": "dequeue",
    "redrive": "dequeue",
    "revoke_consumer": "grant_consumer",
    "revoke_queue": "grant_queue",
    "schedule_times": "schedule",
}


# --- functions -----------------------------------------------------------------


def initial_value(text):
    text = re.sub(r"::[\w ]+(\[\])?$", "", text)
    text = "'0'" if text == "'00:00:00'" else text
    return text.lower() if text in ("NULL", "TRUE", "FALSE") else text


def link_errors(text):
    return re.sub(r"\b[0-9A-Z]{5}\b", lambda m: f"[{m[0]}](errors.md#{m[0].lower()})", text)


def named(text, arguments):
    """The names of arguments that the text begins with, and what it says about them; or no names, and the text."""
    pattern, names, at = re.compile(r"(, and |, | and |)(\w+)"), [], 0
    while (found := pattern.match(text, at)) and found[2] in arguments and bool(found[1]) == bool(names):
        names.append(found[2])
        at = found.end()
    return (names, text[at:].removeprefix(":").strip()) if names and text[at : at + 1] == ":" else ([], text)


class Comment:
    """A COMMENT ON a function: what it does, what its arguments and results mean, more paragraphs, errors."""

    def __init__(self, comment, arguments, linked=str):
        first, *lines = linked(re.sub(r"\n +", " ", comment or "")).split("\n")  # a line that begins with blanks continues one
        self.summary, self.meanings, self.paragraphs, self.errors = sentence(first), {}, [], ""
        for line in lines:
            names, text = named(line, arguments)
            self.meanings |= dict.fromkeys(names, text)
            if line.startswith("Errors "):
                self.errors = "Errors: " + link_errors(line.removeprefix("Errors ")) + "."
            elif not names:
                self.paragraphs.append(sentence(line))


class Functions:
    """The functions of the extension.  Overloads are described together; names in aq stand without a schema."""

    def __init__(self, server):
        self.by_name = {}
        for function in server.rows(FUNCTIONS):
            function["arguments"] = function["arguments"] or []
            schema = "" if function["schema"] == "aq" else function["schema"] + "."
            self.by_name.setdefault(schema + function["name"], []).append(function)

    def summary(self, name):
        """The first sentence about a function, for an index."""
        first = Comment(self.by_name[name][0]["comment"], ()).summary
        return re.split(r"(?<=[^.]\.) (?=[A-Z])|; ", first)[0].removesuffix(".")

    def text(self, name, linked):
        """The overloads of a function by the names of their arguments; what one says is not repeated by the next."""
        forms, said = {}, set()
        for function in self.by_name[name]:
            forms.setdefault(tuple(a["name"] for a in function["arguments"]), []).append(function)
        parts = [part for form in forms.values() for part in self.form(form, said, linked)]
        return "\n".join(parts)

    def form(self, form, said, linked):
        """The parts of the text about overloads whose arguments have the same names."""
        first, procedure = form[0], form[0]["kind"] == "p"
        names = {a["name"] for a in first["arguments"]}
        comments = [Comment(function["comment"], names, linked) for function in form]
        meanings = {name: text for comment in comments for name, text in comment.meanings.items()}
        inputs, outputs = [], []
        for at, argument in enumerate(first["arguments"]):
            types = " or ".join(dict.fromkeys(type_name(f["arguments"][at]["type"]) for f in form))
            initial = f"`{initial_value(argument['initial'])}`" if argument["initial"] else "required"
            output = argument["mode"] in "to" and not procedure
            (outputs if output else inputs).append((argument["name"], types, initial))
        arguments = [row[0] for row in inputs]
        yield self.signature(first, arguments, outputs)
        yield self.does(form, comments)
        rows = [
            (f"`{name}`", *row, meanings.get(name) or self.meaning(first["name"], name, linked))
            for name, *row in inputs
            if not said or name in meanings
        ]
        if rows:
            yield table(("argument", "type", "default", "meaning"), rows)
        rows = [(f"`{name}`", types, meanings[name]) for name, types, _ in outputs if name in meanings and name not in arguments]
        if rows:
            yield table(("result", "type", "meaning"), rows)
        for text in [*comments[0].paragraphs, comments[0].errors]:
            if text and text not in said:
                yield folded(text) + "\n"
            said.add(text)

    def meaning(self, function, argument, linked):
        """What an argument means of which the function's comment says nothing."""
        like = SAME.get(function)
        if like and any(argument == other["name"] for f in self.by_name[like] for other in f["arguments"]) and argument not in GENERAL:
            return linked(f"as in aq.{like}")
        return GENERAL.get(argument)

    def does(self, form, comments):
        """What the overloads do: said once if it is the same."""
        summaries = [comment.summary for comment in comments]
        if len(set(summaries)) == 1:
            return folded(summaries[0]) + "\n"
        at = next(n for n, a in enumerate(form[0]["arguments"]) if a["type"] != form[1]["arguments"][n]["type"])
        own = [(type_name(f["arguments"][at]["type"]), text) for f, text in zip(form, summaries)]
        if summaries[1].startswith("The same "):
            own = [(kind, text[:1].lower() + text[1:]) for kind, text in own[1:]]
            return folded(summaries[0] + "\n\n" + "\n".join(f"- `{kind}`: {text}" for kind, text in own)) + "\n"
        return folded("\n".join(f"- `{kind}`: {text}" for kind, text in own)) + "\n"

    def signature(self, function, arguments, outputs):
        call = "CALL " if function["kind"] == "p" else ""
        text = f"{call}{function['schema']}.{function['name']}({', '.join(arguments)})"
        if outputs:
            text += " -> table (" + ", ".join(f"{name} {types}" for name, types, _ in outputs) + ")"
        elif not call:
            text += " -> " + type_name(function["result"])
        return "```text\n" + wrap(text) + "\n```\n"


def deprecated(server):
    return table(("deprecated", "instead"), [(f"`{row['name']}`", f"`{row['instead']}`") for row in server.rows(DEPRECATED)])


def wrap(text, limit=88):
    """Breaks a long signature at commas, and before its result."""
    done = []
    while len(text) > limit:
        at = text.rfind(" -> ", 0, limit) if " -> " in text[20:limit] else text.rfind(", ", 0, limit) + 1
        done.append(text[:at])
        text = "    " + text[at:].strip()
    return "\n".join([*done, text])


def function_index(functions, page):
    """A table for each group of a page's functions: the second-level headings, and the functions below them."""
    lines = []
    for heading, name in re.findall(r"^## (.*)$|^<!-- begin function (.*?) -->$", page, re.M):
        if heading:
            lines.append((heading, []))
        elif lines:
            lines[-1][1].append(name)
    rows = []
    for heading, names in lines:
        for at, name in enumerate(names):
            group = f"[{heading}](#{slug(heading)})" if at == 0 else ""
            full = name if "." in name else "aq." + name
            rows.append((group, f"[{name}](#{slug(full)})", functions.summary(name)))
    return table(("", "function", "does"), rows)


# --- views ---------------------------------------------------------------------

RELATIONS = """
SELECT n.nspname AS schema, c.relname AS name, c.relkind AS kind, obj_description(c.oid, 'pg_class') AS comment,
  (SELECT json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, NULL),
     'comment', col_description(c.oid, a.attnum)) ORDER BY a.attnum)
   FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
WHERE n.nspname IN ('aq', 'sys') AND c.relkind = 'v' OR n.nspname = 'aq_internal' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname"""

# group: the views that belong to it; the first pattern that fits counts
GROUPS = {
    "tables": r"aq_internal\..*",
    "queues": r"aq\.(queue\w*|subscribers|privileges|messages|dead_letters|buffered_queues|latencies|partitions|shards|role_usage|errors|database_properties)",
    "background": r"aq\.(workers|schedules|propagations|registrations|notifiers|links|nodes|node_units|actions)",
    "history": r"aq\.(snapshot\w*|baselines|session_history|stored_session_history|sampled_waits|session_sampler|history_\w+)",
    "waits": r"aq\..*",
    "oracle history": r"sys\.(dba_hist_\w+|v\$(active_session_history|ash_info|sampled_event))",
    "oracle waits": r"sys\.(x\$.*|v\$(event|latch|mutex|libcache|librarycache|rowcache|db_object|sess|mystat|stat|sys).*)",
    "oracle queues": r"sys\..*",
}


class Relations:
    """The views of the extensions, and the tables of the catalog."""

    def __init__(self, server):
        self.groups = {group: [] for group in GROUPS}
        for relation in server.rows(RELATIONS):
            full = f"{relation['schema']}.{relation['name']}"
            group = next(group for group, pattern in GROUPS.items() if re.fullmatch(pattern, full))
            quoted = re.search(r"[^a-z0-9_]", relation["name"])
            relation["shown"] = f'{relation["schema"]}."{relation["name"]}"' if quoted else full
            self.groups[group].append(relation)

    def text(self, group, linked):
        """A table of columns for each view; one that has the columns of an earlier one names that."""
        parts, seen = [], {}
        for relation in self.groups[group]:
            shown = relation["shown"]
            parts.append(f"### {shown}\n\n{folded(linked(sentence(relation['comment'] or '')))}\n")
            rows = tuple((f"`{c['name']}`", type_name(c["type"]), linked(c["comment"] or "")) for c in relation["columns"])
            earlier = seen.setdefault(rows, shown)
            if earlier == shown:
                parts.append(table(("column", "type", "meaning"), rows))
            else:
                parts.append(f"Its columns are those of [{earlier}](#{slug(earlier)}).\n")
        return "\n".join(parts)

    def index(self, group, page):
        """A line for each view: its name, which leads to the page, and what it shows."""
        rows = []
        for relation in self.groups[group]:
            shown = relation["shown"]
            first = (relation["comment"] or "").split(". ")[0].removesuffix(".")
            rows.append((f"[{shown}]({page}#{slug(shown)})", first))
        return table(("view", "shows"), rows)


# --- links between them ----------------------------------------------------------


class Places:
    """Where functions and views are described: a name in a comment becomes a link."""

    def __init__(self, functions, relations, pages):
        """pages: name of a file -> its text."""
        self.of = {}
        for page, text in pages.items():
            for kind, name in re.findall(r"^<!-- begin (function|views) (.*?) -->$", text, re.M):
                shown = [relation["shown"] for relation in relations.groups[name]] if kind == "views" else []
                names = [name if "." in name else "aq." + name] if name in functions.by_name else shown
                self.of |= {full: (page, slug(full)) for full in names if full not in self.of}

    def linked(self, here):
        """A function that writes links into a text of this page."""

        def link(match):
            page, anchor = self.of.get(match[0], (None, None))
            return f"[{match[0]}]({'' if page == here else page}#{anchor})" if page else match[0]

        return lambda text: re.sub(r"(?<![\w.`])(?:aq|aq_jms|aq_lab|sys)\.\w+\b(?!\()", link, text)
