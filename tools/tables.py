"""Markdown from rows and texts, for the generated parts of the documentation."""

import re
import textwrap

TYPE_NAMES = {"timestamp with time zone": "timestamptz", "integer": "int", "boolean": "bool"}


def folded(text, width=120):
    """Markdown without tables and code blocks, its lines at most this long."""
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent="  " if line.startswith("- ") else "", break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )


def cell(value):
    return re.sub(r"\s+", " ", str("" if value is None else value)).replace("|", "\\|").strip()


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        lines.append("| " + " | ".join(cell(value) for value in row) + " |")
    return "\n".join(lines) + "\n"


def type_name(name):
    array = name.endswith("[]")
    bare = name[:-2] if array else name
    return TYPE_NAMES.get(bare, bare) + ("[]" if array else "")


def sentence(text):
    return text if text.endswith((".", ":")) else text + "."


def slug(text):
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
