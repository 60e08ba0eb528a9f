"""The external symbols of the built objects: which file defines them, which files use them.

tools/check.py asks for circles among the files of a part, for uses against the
direction of its folders, and for names without their file's prefix.
"""

import subprocess
from pathlib import Path

# what PostgreSQL asks for by these names, and a mark of static probes
NAMED_BY_OTHERS = ("pg_finfo_", "_PG_init", "Pg_magic_func", "_.stapsdt.")


class Symbols:
    """The symbols of the objects beside the C files under `source`."""

    def __init__(self, source: Path) -> None:
        self.unbuilt: list[Path] = []
        self.defined: dict[str, Path] = {}  # symbol -> the C file that defines it
        self.used: dict[Path, set[str]] = {}  # C file -> symbols that others define
        objects = []
        for path in sorted(source.rglob("*.c")):
            if path.with_suffix(".o").exists():
                self.used[path] = set()
                objects.append(path.with_suffix(".o"))
            else:
                self.unbuilt.append(path)
        if objects:
            self._read(objects)

    def _read(self, objects: list[Path]) -> None:
        # one nm for all: a process for each of hundreds takes a hundred times as long
        output = subprocess.run(["nm", "-A", "-g", *objects], check=True, capture_output=True, text=True).stdout
        for line in output.splitlines():
            name_of_object, _, symbol = line.rpartition(".o:")
            *_, kind, name = symbol.split()
            path = Path(f"{name_of_object}.c")
            if kind == "U":
                self.used[path].add(name)
            else:
                self.defined[name] = path

    def uses(self, path: Path) -> dict[Path, list[str]]:
        """The files that this one uses, each with the symbols."""
        found: dict[Path, list[str]] = {}
        for name in sorted(self.used[path]):
            if name in self.defined:
                found.setdefault(self.defined[name], []).append(name)
        return found

    def misnamed(self) -> list[tuple[Path, str]]:
        """Symbols that do not begin with aq_ and the stem of their file."""
        return [
            (path, name)
            for name, path in sorted(self.defined.items())
            if not name.startswith(NAMED_BY_OTHERS) and name != f"aq_{path.stem}" and not name.startswith(f"aq_{path.stem}_")
        ]

    def circles(self, folder: Path) -> list[list[Path]]:
        """The files under the folder that use each other in circles; each circle as large as it is."""
        inside = [path for path in self.used if path.is_relative_to(folder)]
        reached = {path: self._reached(path, folder) for path in inside}
        circles, seen = [], set()
        for path in inside:
            circle = [other for other in inside if other in reached[path] and path in reached[other]]
            if circle and path not in seen:
                circles.append(circle)
                seen.update(circle)
        return circles

    def _reached(self, path: Path, folder: Path) -> set[Path]:
        reached: set[Path] = set()
        new = [path]
        while new:
            found = [other for other in self.uses(new.pop()) if other.is_relative_to(folder) and other not in reached]
            reached.update(found)
            new.extend(found)
        return reached
