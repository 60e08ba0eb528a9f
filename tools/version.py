#!/usr/bin/env python3
"""The version of pgaq, which pgaq.control says.

tools/version.py            compares all places that repeat it
tools/version.py VERSION    writes it everywhere; then tools/docs.py writes the generated tables
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMBER = r"\d+\.\d+\.\d+"

# file or pattern of files -> what stands around the version; the first group is before it, the second after it
PLACES = {
    "*.control": r"(^default_version = ')%s('$)",
    "python/pyproject.toml": r'(^version = ")%s("$)',
    "python/pgaq/command/common.py": r'(^VERSION = ")%s(")',
    "jms/**/pom.xml": r"(<artifactId>pgaq-jms-parent</artifactId>\s*<version>)%s(-SNAPSHOT</version>)",
    "bench/jms-load/pom.xml": r"(<artifactId>pgaq-jms-parent</artifactId>\s*<version>)%s(-SNAPSHOT</version>)",
    "docs/jms.md": r"(<groupId>io\.github\.pgaq</groupId>\s*<artifactId>[\w-]+</artifactId>\s*<version>)%s(-SNAPSHOT</version>)",
}


def current():
    """The version of this tree."""
    return re.search(r"^default_version = '(.*)'$", (ROOT / "pgaq.control").read_text(encoding="utf-8"), re.M)[1]


def places():
    """Each file with the pattern of its version."""
    for pattern, around in PLACES.items():
        for path in sorted(ROOT.glob(pattern)):
            if "target" not in path.parts:
                yield path, re.compile(around % rf"(?P<version>{NUMBER})", re.M)


def check_version():
    """Every place that repeats the version has that of pgaq.control."""
    for path, pattern in places():
        found = [match["version"] for match in pattern.finditer(path.read_text(encoding="utf-8"))]
        if set(found) != {current()}:
            yield f"{path.relative_to(ROOT)}: has version {', '.join(found) or 'none'}; tools/version.py {current()} writes {current()}"
    if f"\n## {current()}\n" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        yield f"CHANGELOG.md: has no section {current()}"


def write(version):
    for path, pattern in places():
        text = path.read_text(encoding="utf-8")
        path.write_text(pattern.sub(rf"\g<1>{version}\g<3>", text), encoding="utf-8")


def main():
    if len(sys.argv) > 1:
        if not re.fullmatch(NUMBER, sys.argv[1]):
            sys.exit(f"{sys.argv[1]} is not a version such as 0.2.0")
        write(sys.argv[1])
    problems = list(check_version())
    print("\n".join(problems) or current())
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
