"""What every command shares: options, the connection, errors and exit codes."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import io
import os
import re
import shlex
import sys
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Callable, Iterable

import click
import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from pgaq import db, text
from pgaq.text import identifier

VERSION = "0.2.0"  # of the command, as in pgaq.control; a test compares
# of W3C Trace Context, as the server checks them, but for zeros and the members of the state
TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]{1,200})?")
TRACESTATE = re.compile("[\t -~]{1,16500}")
OK, FAILURE, USAGE, CONNECT, EXTENSION, RIGHT, MISSING, NOTHING, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 7, 130

# docs/command.md has this table
EXIT_CODES = {
    OK: "done",
    FAILURE: "the server refused it, a message failed, or `pgaq doctor` found a problem",
    USAGE: "an option or argument is wrong",
    CONNECT: "the server cannot be reached, or the connection broke",
    EXTENSION: "the database does not have the extension `pgaq`, or an older version of it",
    RIGHT: "permission denied",
    MISSING: "there is no such queue, consumer, schedule, message, session or snapshot",
    NOTHING: "there is no message (`pgaq receive`)",
    INTERRUPTED: "interrupted by Ctrl-C or SIGTERM",
}

LARGEST = 2**31 - 1  # an int of the server; as seconds, a sleep that every system knows


class Failure(Exception):
    """An end with one line for the user: what is wrong, what to do, and an exit code."""

    def __init__(self, message: str, do: str = "", code: int = FAILURE, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.message, self.do, self.code, self.sqlstate = message, do, code, sqlstate

    def line(self) -> str:
        """One line: sentences, whatever the parts end with."""
        return sentences(self.message, self.do)


class Interrupted(Exception):
    """Ctrl-C or SIGTERM; some versions of typer swallow a KeyboardInterrupt."""


def sentences(*parts: str) -> str:
    """The parts that are there, each with its full stop."""
    return " ".join(part if part.endswith((".", "?", "!")) else f"{part}." for part in parts if part)


@dataclass
class Chosen:
    """The options that every command has."""

    dbname: str = ""
    json: bool = False
    color: bool = True


def chosen() -> Chosen:
    """The common options of the running command."""
    context = click.get_current_context(silent=True)
    if context is None:
        return Chosen()
    root = context.find_root()
    if not isinstance(root.obj, Chosen):
        root.obj = Chosen()
    return root.obj


def _remember(name: str) -> Callable[..., Any]:
    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value:
            root = context.find_root()
            if not isinstance(root.obj, Chosen):
                root.obj = Chosen()
            setattr(root.obj, name, value if name != "color" else False)
        return value

    return callback


def _common() -> list[TyperOption]:
    """New objects for each command: the options before or after its name."""
    panel = "Connection and output"
    return [
        TyperOption(
            param_decls=["--dbname", "-d"], metavar="DATABASE", default="", show_default=False, expose_value=False, callback=_remember("dbname"),
            rich_help_panel=panel, help="Database, connection string or URI; without it, PGHOST, PGDATABASE, PGSERVICE and so on.",
        ),
        TyperOption(param_decls=["--json"], is_flag=True, default=False, show_default=False, expose_value=False, callback=_remember("json"), rich_help_panel=panel, help="Write JSON."),
        TyperOption(param_decls=["--no-color"], is_flag=True, default=False, show_default=False, expose_value=False, callback=_remember("color"), rich_help_panel=panel, help="Write no colors; so does NO_COLOR."),
    ]  # fmt: skip


class _Help:
    """Help without the spaces that fill its lines, where it goes into a pipe or a file."""

    def format_help(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for parameter in self.params:  # type: ignore[attr-defined]
            # typer's own options of completion would say that their default is None
            if isinstance(parameter, click.Option) and parameter.default is None:
                parameter.show_default = False
        if sys.stdout.isatty():
            super().format_help(context, formatter)  # type: ignore[misc]
            return
        with contextlib.redirect_stdout(io.StringIO()) as written:
            super().format_help(context, formatter)  # type: ignore[misc]
        sys.stdout.write(without_trailing_spaces(written.getvalue()))


class Command(_Help, TyperCommand):
    """A command with the common options."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        given = inspect.signature(self.callback).parameters if self.callback else {}
        for parameter in self.params:
            # typer sets the help of an argument before click 8.5, which has such help itself, sets it to none
            if isinstance(parameter, click.Argument) and parameter.name in given and not getattr(parameter, "help", None):
                parameter.help = getattr(given[parameter.name].default, "help", None)
        if any(parameter.metavar == DURATION for parameter in self.params):
            self.epilog = FORMS
        self.params.extend(_common())

    def invoke(self, context: click.Context) -> Any:
        for parameter in self.params:
            values = context.params.get(parameter.name or "")
            for value in values if isinstance(values, (list, tuple)) else [values]:
                if type(value) in (int, float) and not abs(value) <= LARGEST:  # also not a number
                    raise click.BadParameter(f"{value} is out of range", context, parameter)
        return super().invoke(context)


class Group(_Help, TyperGroup):
    """A group with the common options, which suggests the command that was meant."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params.extend(_common())

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        # later versions of click call it an error
        if not arguments and self.no_args_is_help and not context.resilient_parsing:
            sys.stdout.write(context.get_help())
            context.exit()
        return super().parse_args(context, arguments)

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            raise Interrupted from None

    def resolve_command(self, context: click.Context, arguments: list[str]) -> Any:
        try:
            return super().resolve_command(context, arguments)
        except click.UsageError as error:
            near = difflib.get_close_matches(arguments[0], self.list_commands(context), 1)
            if near and "Did you mean" not in error.format_message():  # later versions ask it themselves
                error.message = f"{error.message.rstrip('.')}. Did you mean '{near[0]}'?"
            raise


def without_trailing_spaces(words: str) -> str:
    """The same lines without spaces at their ends."""
    return re.sub(r" +(?=\n|\Z)", "", words)


def group(text: str, cls: type[Group] = Group, **more: Any) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(help=text, cls=cls, no_args_is_help=more.pop("no_args_is_help", True), pretty_exceptions_enable=False, **more)


def command(app: typer.Typer, name: str, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a command of a group."""
    return app.command(name, cls=Command, **more)


# -- the connection


def conninfo() -> str:
    """Where the option -d says the server is; empty: where libpq's environment says it."""
    try:
        return db.conninfo(chosen().dbname) if chosen().dbname else ""
    except db.Error as error:
        raise Failure(
            " ".join(str(error).split()), "Name the server with -d, or with PGHOST, PGDATABASE, PGSERVICE and so on", USAGE
        ) from None


def connect(*, extension: bool = True, **parameters: Any) -> db.Connection:
    """A connection by libpq's rules; the database must have the extension."""
    try:
        info = db.conninfo(chosen().dbname) if chosen().dbname else ""
        # prepared statements would not survive a pooler that hands out other sessions
        conn = db.connect(info, fallback_application_name="pgaq", prepare_threshold=None, **parameters)
    except db.Error as error:
        message = re.sub(r"^connection (failed|is bad): ", "", _sentences(str(error)))
        raise Failure(
            f"cannot connect{_target(chosen().dbname)}: {message}",
            "Name the server with -d, or with PGHOST, PGPORT, PGDATABASE, PGUSER or PGSERVICE",
            CONNECT,
        ) from None
    conn.add_notice_handler(_Notices())
    db.keep_digits(conn)
    if extension and not db.value(conn, "SELECT 1 FROM pg_extension WHERE extname = 'pgaq'"):
        name = conn.info.dbname
        conn.close()
        raise Failure(
            f'database "{name}" does not have the extension pgaq',
            "Run CREATE EXTENSION pgaq in it, or name another database with -d",
            EXTENSION,
        )
    return conn


class _Notices:
    """Notices and warnings of the server on standard error, each once."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def __call__(self, notice: Any) -> None:
        words = " ".join((notice.message_primary or "").split())
        if words not in self.seen:
            self.seen.add(words)
            text.say(text.to_json({"notice": words}) if chosen().json else f"pgaq: {words}", sys.stderr)


def _sentences(said: str) -> str:
    """The lines of libpq as one line; a line that asks something ends the sentence before it."""
    lines = [" ".join(line.split()) for line in said.splitlines() if line.strip()]
    return re.sub(r"(?<=[^.?;:]) (?=Is the server running|connection to server)", ". ", " ".join(lines)).replace("FATAL: ", "")


def _target(word: str) -> str:
    """to HOST, if one is named."""
    try:
        host = db.parts(word).get("host") if word else None
    except db.Error:
        return ""
    host = host or os.environ.get("PGHOST")
    return f" to {host}" if host else ""


SCHEDULES_LISTED = "pgaq schedule list shows those that this role can see"
KIND_OF_STATE = {"42501": RIGHT, "42704": MISSING}


def failure(error: db.Error, conn: db.Connection | None = None) -> Failure:
    """What the server said, as one line with what to do."""
    sqlstate, message, detail, hint = db.said(error)
    if sqlstate is None or sqlstate.startswith(("08", "57P")):
        return Failure(f"the connection is lost: {message}", "Run the command again when the server answers", CONNECT, sqlstate)
    if sqlstate in ("42P01", "42883") and re.match('(relation|function) "?aq\\.', message) and conn is not None:
        version = db.value(conn, "SELECT extversion FROM pg_extension WHERE extname = 'pgaq'")
        if version != VERSION:
            return Failure(
                f"the extension pgaq in this database has version {version}, the command needs {VERSION}",
                "Run ALTER EXTENSION pgaq UPDATE",
                EXTENSION,
                sqlstate,
            )
    do = as_commands(hint)
    owned = re.match('must be owner of queue "(.*)"$', message)
    named = re.search(r'^queue "(.*?)" does not exist', message)
    if sqlstate == "42501" and not do:
        do, detail = detail or _who_grants(message, conn), ""
    if named:
        do = near_queue(conn, named[1])
    if re.match('schedule ".*" does not exist', message):
        do = SCHEDULES_LISTED
    if owned:
        owner = db.value(conn, "SELECT owner::text FROM aq.queues WHERE queue_name = %s", [owned[1]]) if conn else None
        do = f"Run it as {owner or 'its owner'}, or as a member of that role"
    if detail:
        message = f"{message}: {detail}"
    return Failure(message, do, KIND_OF_STATE.get(sqlstate, FAILURE), sqlstate)


# what the server's hints call, and the command that does it; the longer forms first
COMMANDS = (
    ("drop the queue with force => true", "use pgaq queue drop --force"), ("aq.drop_queue with force => true", "pgaq queue drop --force"),
    ("aq.rtpctx_start() and aq.rtpctx_report(), which store nothing", "pgaq report rtpctx, which stores nothing"),
    ("SELECT aq.take_snapshot", "pgaq snapshot"), ("aq.grant_queue", "pgaq queue grant"), ("aq.revoke_queue", "pgaq queue revoke"), ("aq.drop_queue", "pgaq queue drop"),
    ("aq.create_queue", "pgaq queue create"), ("aq.start_queue", "pgaq queue start"), ("aq.stop_queue", "pgaq queue stop"),
    ("aq.pause", "pgaq queue pause"), ("aq.resume", "pgaq queue resume"),
    ("aq.purge_queue", "pgaq queue purge"), ("aq.convert_queue", "pgaq queue convert"), ("aq.redrive", "pgaq dead redrive"),
    ("aq.grant_consumer", "pgaq subscriber grant"), ("aq.revoke_consumer", "pgaq subscriber revoke"), ("aq.subscribe", "pgaq subscriber add"),
    ("Leave the consumer null", "Leave --consumer out"), ("multiple_consumers => true", "--topic"), ("the view aq.subscribers lists subscribers, and recipients while they have messages", "pgaq subscriber list shows subscribers, and recipients while they have messages"),
    ("see the view aq.snapshots", "see pgaq snapshot list"), ("Use a process id from pg_stat_activity", "pgaq top --view sessions shows them"),
    ("The view aq.schedules shows them", "pgaq schedule list shows them"), ("aq.unschedule", "pgaq schedule drop"), ("aq.alter_schedule", "pgaq schedule alter"),
    ("aq.schedule_times", "pgaq schedule times"), ("aq.start_schedule", "pgaq schedule start"), ("aq.unsubscribe", "pgaq subscriber remove"), ("aq.alter_subscriber", "pgaq subscriber alter"), ("aq.take_snapshot", "pgaq snapshot"),
)  # fmt: skip


def as_commands(hint: str) -> str:
    """A hint of the server with commands instead of functions, where there is a command."""
    for function, words in COMMANDS:
        call = re.compile(rf"(?<!ON FUNCTION )(\bcall )?{re.escape(function)}(?![\w])(?:\(([^()]*)\))?")
        hint = call.sub(lambda found: f"{'use ' if found[1] else ''}{words}{_arguments(found[2])}", hint)
    return hint


def _arguments(words: str | None) -> str:
    """The literals of a call as arguments of a command."""
    literals = re.findall(r"'((?:[^']|'')*)'", words or "")
    return "".join(" " + shlex.quote(each.replace("''", "'")) for each in literals)


def _who_grants(message: str, conn: db.Connection | None) -> str:
    """What helps after a denied permission."""
    function = re.search(r"for function (\w+)", message)
    if function and re.search("snapshot|report|stat|ash|wait|latch|mutex|session|baseline|rtpctx", function[1]):
        return "It takes membership in pg_monitor"
    if function:
        return f"A superuser grants it: GRANT EXECUTE ON FUNCTION aq.{function[1]} TO {identifier(conn.info.user) if conn else 'ROLE'}"
    if re.search("for (view|table|schema)", message):
        return "It takes membership in pg_monitor"
    return "The owner of the queue can grant it: pgaq queue grant QUEUE ROLE"


def near_queue(conn: db.Connection | None, name: str) -> str:
    """What to do about a queue that does not exist, or that the role cannot use: the server does not say which."""
    listed = "pgaq queue list shows the queues that this role can use"
    if conn is None or conn.closed:
        return listed
    try:
        names = [row["queue_name"] for row in db.rows(conn, "SELECT queue_name FROM aq.queues")]
        hidden = not db.value(conn, "SELECT pg_has_role('pg_monitor', 'USAGE')")
    except db.Error:
        return listed
    near = difflib.get_close_matches(name, names, 1) or [each for each in names if each.lower() == name.lower()]
    if near:
        return f'Did you mean "{near[0]}"?'
    return (
        f"{listed}; the owner of another one can share it: pgaq queue grant {shlex.quote(name)} {shlex.quote(identifier(conn.info.user))}"
        if hidden
        else listed
    )


class asking:
    """Context: errors of the server become a Failure; the connection is closed at the end."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters

    def __enter__(self) -> db.Connection:
        self.conn = connect(**self.parameters)
        return self.conn

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        try:
            if isinstance(error, db.Error):
                raise failure(error, self.conn) from None
        finally:
            self.conn.close()


def queue_type(conn: db.Connection, queue: str) -> dict[str, Any]:
    """Payload type and kind of a queue."""
    found = db.row(
        conn,
        "SELECT payload_type::text AS payload_type, multiple_consumers, exception_queue, queue_type FROM aq.queues WHERE queue_name = %s",
        [queue],
    )
    if found is None:
        raise Failure(f'queue "{queue}" does not exist', near_queue(conn, queue), MISSING)
    return found


# -- arguments


UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400}  # fmt: skip


DURATION = "DURATION"
FORMS = "DURATION: a number and its unit, such as 500ms, 30s, 5min, 2h or 1d; without a unit it is seconds."


def duration(default: str | None, *names: str, help: str, show_default: Any = False) -> Any:
    """An option that is a length of time."""
    return typer.Option(
        default, *names, metavar=DURATION, callback=span_option, help=help, show_default=True if default is not None else show_default
    )


def span(word: str | None) -> timedelta | None:
    """'30', '30s', '5 min', '1.5h', '2d': a length of time; a number alone is seconds."""
    if word is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", word)
    if not found or (found[2] or "s") not in UNITS:
        raise click.BadParameter(f"'{word}' is not a length of time such as 500ms, 30s, 5min, 2h or 1d")
    seconds = float(found[1]) * UNITS[found[2] or "s"]
    if seconds > LARGEST:
        raise click.BadParameter(f"'{word}' is too long: at most {LARGEST // 86400} days")
    return timedelta(seconds=seconds)


def span_option(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Callback of an option: checks the length of time at once."""
    if not context.resilient_parsing:
        span(value)
    return value


def message_id(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Callback of an option or argument: checks the id of a message at once."""
    if value is not None and not context.resilient_parsing:
        try:
            uuid.UUID(value)
        except ValueError:
            raise click.BadParameter(f"'{value}' is not the id of a message") from None
    return value


def names_of_queues(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completion: the queues that the role can use; nothing if the server cannot be asked."""
    return _names(ctx, "SELECT queue_name FROM aq.queues WHERE starts_with(queue_name, %s) ORDER BY 1", incomplete)


def names_of_consumers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completion: the consumers of topics."""
    return _names(ctx, "SELECT DISTINCT consumer FROM aq.subscribers WHERE starts_with(consumer, %s) ORDER BY 1", incomplete)


def names_of_schedules(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completion: the schedules that the role sees."""
    return _names(ctx, "SELECT schedule_name FROM aq.schedules WHERE starts_with(schedule_name, %s) ORDER BY 1", incomplete)


def one_of(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Completion: fixed words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def _names(context: click.Context, query: str, incomplete: str) -> list[str]:
    options = context.find_root().obj
    try:
        word = options.dbname if isinstance(options, Chosen) else ""
        with db.connect(db.conninfo(word) if word else "", connect_timeout="2") as conn:
            return [next(iter(row.values())) for row in db.rows(conn, query, [incomplete])]
    except db.Error:
        return []


QUEUE: Any = typer.Argument(..., metavar="QUEUE", help="Name of the queue or topic.", autocompletion=names_of_queues, show_default=False)
MODES = ("persistent", "buffered", "persistent_or_buffered")


def choice(default: str, name: str, words: tuple[str, ...], *, metavar: str, help: str) -> Any:
    """An option that is one of some words."""

    def known(context: click.Context, parameter: click.Parameter, value: str) -> str:
        if value not in words and not context.resilient_parsing:
            raise click.BadParameter(f"'{value}' is not one of {', '.join(words)}")
        return value

    return typer.Option(
        default,
        name,
        metavar=metavar,
        callback=known,
        autocompletion=one_of(words),
        help=f"{help}: {', '.join(words[:-1])} or {words[-1]}.",
    )


def messages_of(default: str, help: str) -> Any:
    """The option that chooses between logged and buffered messages."""
    return choice(default, "--messages", MODES, metavar="MODE", help=help)


CONSUMER: Any = typer.Option(
    None, "--consumer", "-c", metavar="NAME", help="Consumer of a topic.", autocompletion=names_of_consumers, show_default=False
)


def confirm(question: str, yes: bool) -> None:
    """Asks before something is lost; without a terminal, --yes must be given."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Failure(f"{question} Not confirmed", "Add --yes", USAGE)
    if not typer.confirm(text.printable(question), err=True):
        raise Failure("nothing was changed", code=FAILURE)
