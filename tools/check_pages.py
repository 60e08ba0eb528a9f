"""Checks of pages, and of what the project says to people who come from outside: tools/check.py runs them."""

import os
import re
from pathlib import Path

from mkdocs_hooks import groups

ROOT = Path(__file__).resolve().parent.parent

# looked up in, not read from the first line to the last; so are all pages below "Reference" in docs/README.md
LOOKED_UP = {"compatibility.md", "differences.md", "lab.md", "waits.md"}


def check_lengths():
    """A page that is read from its first line to its last has at most 2,500 words."""
    for page in sorted({page for pages in groups().values() for page in pages} - LOOKED_UP - set(groups()["Reference"])):
        words = len((ROOT / "docs" / page).read_text(encoding="utf-8").split())
        if words > 2500:
            yield f"docs/{page}: {words} words; split it by the reader's task, or say less"


def check_workflow():
    """The workflow of continuous integration calls commands and rungs that exist."""
    workflow = ROOT / ".github" / "workflows" / "ci.yml"
    if not workflow.exists():  # the archive of a release
        return
    text = workflow.read_text(encoding="utf-8")
    ladder = (ROOT / "python" / "pgaq_proof" / "ladder.py").read_text(encoding="utf-8")
    commands = set(re.findall(r"(?:\./|tools/)[a-z]+(?= |$)", text, re.M))
    if not commands:
        yield ".github/workflows/ci.yml: calls none of the project's commands"
    for command in sorted(commands):
        if not os.access(ROOT / command, os.X_OK):
            yield f".github/workflows/ci.yml: {command} is not a command"
    for rungs in re.findall(r"\brungs: ([a-z_ ]+)|\./test ([a-z_ ]+)$", text, re.M):
        for rung in "".join(rungs).split():
            if not re.search(rf'Rung\(\s*"{rung}"', ladder):
                yield f".github/workflows/ci.yml: ./test has no rung {rung}"
