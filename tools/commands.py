"""The tables of docs/command-options.md and docs/command.md, and the man page python/pgaq.1, from the command itself."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMON = ("dbname", "json", "no_color")


def root():
    """The command; needs Debian's python3-typer."""
    if str(ROOT / "python") not in sys.path:
        sys.path.insert(0, str(ROOT / "python"))
    import typer
    from pgaq.command import main

    return typer.main.get_command(main.app)


def commands(group=None, path=()):
    """(name, command) of every command that does something; of the lab, whose experiments have a page of their own, only load."""
    group = group or root()
    for name in group.list_commands(None):
        found = group.get_command(None, name)
        if found.hidden:
            continue
        if name == "lab":
            yield "lab load", found.get_command(None, "load")
            continue
        if hasattr(found, "list_commands"):
            yield from commands(found, (*path, name))
        else:
            yield " ".join((*path, name)), found


def cell(text):
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").strip()


def usage(name, command):
    arguments = [parameter.metavar for parameter in command.params if parameter.param_type_name == "argument"]
    return " ".join(["pgaq", name, *arguments, "[OPTION...]"])


def option(parameter):
    """The row of an option or argument."""
    if parameter.param_type_name == "argument":
        return f"| `{parameter.metavar.strip('[]')}` | {cell(parameter.help or '')}{default(parameter)} |"
    names = ", ".join(f"`{word}`" for word in sorted((*parameter.opts, *parameter.secondary_opts), key=len, reverse=True))
    metavar = (
        ""
        if parameter.is_flag
        else f" {parameter.metavar or parameter.type.name.upper().replace(' RANGE', '').replace('TEXT', 'WORD').replace('FLOAT', 'NUMBER').replace('INTEGER', 'NUMBER')}"
    )
    return f"| {names}{metavar} | {cell(parameter.help or '')}{default(parameter)} |"


def default(parameter):
    shown = parameter.show_default
    if isinstance(shown, str):
        return f" Default: {shown}."
    value = parameter.default
    if not shown or value is None or value is False or value == "" or callable(value) or getattr(parameter, "required", False):
        return ""
    return f" Default: {value}."


def rows(parameters):
    lines = [option(parameter) for parameter in parameters]
    return "\n".join(["| option | meaning |", "|---|---|", *lines]) + "\n" if lines else ""


def text(name):
    """The generated block of one command."""
    command = dict(commands())[name]
    own = [parameter for parameter in command.params if parameter.name not in COMMON and parameter.name != "help"]
    return f"### pgaq {name}\n\n```text\n{usage(name, command)}\n```\n\n{about(command.help)}\n" + (f"\n{rows(own)}" if own else "")


def about(words):
    import textwrap

    paragraphs = (" ".join(part.split()) for part in words.split("\n\n"))
    return "\n\n".join(textwrap.fill(part, 120, break_long_words=False, break_on_hyphens=False) for part in paragraphs)


def common():
    command = dict(commands())["status"]
    return rows([parameter for parameter in command.params if parameter.name in COMMON])


def exit_codes():
    from pgaq.command.common import EXIT_CODES

    lines = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["| exit code | meaning |", "|---|---|", *lines]) + "\n"


def content(key):
    """The block of a key: common, exit codes, or the name of a command."""
    found = root()  # also puts python/ on the path
    del found
    return {"common": common, "exit codes": exit_codes}.get(key, lambda: text(key))()


def roff(text):
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.M)


def manual(parameters):
    """Options in the man page."""
    for parameter in parameters:
        names, meaning = option(parameter)[2:-2].split(" | ", 1)
        yield from (".TP", ".B " + roff(names.replace("`", "")), roff(meaning.replace("&lt;", "<").replace("\\|", "|")))


def man():
    from pgaq.command.common import EXIT_CODES

    listed = dict(commands())
    version = re.search(r"default_version = '(.*?)'", (ROOT / "pgaq.control").read_text(encoding="utf-8"))[1]
    lines = [
        '.\\" written by tools/docs.py',
        f'.TH PGAQ 1 "" "pgaq {version}" "Advanced Queuing for PostgreSQL"',
        ".SH NAME",
        "pgaq \\- show queues of PostgreSQL, send and receive messages",
        ".SH SYNOPSIS",
        ".B pgaq",
        ".I COMMAND",
        "[ARGUMENT...] [OPTION...]",
        ".SH OPTIONS OF ALL COMMANDS",
        *manual(parameter for parameter in listed["status"].params if parameter.name in COMMON),
        ".SH COMMANDS",
    ]
    for name, command in listed.items():
        own = [parameter for parameter in command.params if parameter.name not in COMMON and parameter.name != "help"]
        lines += [".SS " + roff(usage(name, command)), roff(about(command.help)).replace("\n\n", "\n.PP\n"), *manual(own)]
    lines += [".SH EXIT STATUS", *(line for code, meaning in EXIT_CODES.items() for line in (".TP", f".B {code}", roff(meaning)))]
    return "\n".join(lines) + "\n"


def missing(pages):
    """Commands that no page describes."""
    for name, _ in commands():
        if f"<!-- begin command {name} -->" not in pages:
            yield f"docs: the command pgaq {name} is described on no page"
