"""Hooks of MkDocs (mkdocs.yml) that let the site be built from pages that are written for GitHub.

The navigation is that of docs/README.md: its headings, and the pages in their tables.
A file outside docs/ that a page links to is part of the site, below source/.

Each version has a folder in the site, beside those of other versions that are already there.  versions.json and the
folders are laid out as the theme and the program mike expect them, so a web server of files is enough.
"""

import json
import logging
import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = "source/"
FENCE = re.compile(r"(\s*(?:```+|~~~+))\s*(\w*)[^`]*$")
LINK = re.compile(r"`[^`]*`|\]\((?![a-z]+:)([^)\s#]+)(#[^)\s]*)?\)")  # code, which has no links, or a link's target
ITEM = re.compile(r"\s*([-*]|\d+\.) ")
log = logging.getLogger("mkdocs.hooks")
building = False


def groups(index=ROOT / "docs/README.md"):
    """The headings of docs/README.md, each with the pages in its table."""
    found = {}
    for line in index.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found[line[3:]] = pages = []
        elif match := re.match(r"\| \[[^]]*\]\(([\w-]+\.md)\)", line):
            pages.append(match[1])
    return found


def slug(text, separator="-"):
    """The anchor of a heading on GitHub."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)


def uri(path):
    """The place in the site of a file of the repository."""
    return path.removeprefix("docs/") if path.startswith("docs/") else OUTSIDE + path


def path_of(uri):
    return uri.removeprefix(OUTSIDE) if uri.startswith(OUTSIDE) else "docs/" + uri


def target(path, link):
    """The file that a link of the page leads to; of a folder its README."""
    goal = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return posixpath.join(goal, "README.md") if (ROOT / goal).is_dir() else goal


def prose(text):
    """(line, whether it is outside of code) of a page."""
    fence = None
    for line in text.split("\n"):
        match = FENCE.match(line)
        if fence is None and match:
            fence = match[1].strip()
        elif fence is not None and line.strip() == fence:
            fence = None
        elif fence is None:
            yield line, True
            continue
        yield line, False


def linked(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    return {target(path, match[1]) for line, outside in prose(text) if outside for match in LINK.finditer(line) if match[1]}


def version():
    return re.search(r"default_version = '(.*)'", (ROOT / "pgaq.control").read_text(encoding="utf-8"))[1]


def on_startup(command, **_):
    global building
    building = command == "build"


def on_config(config):
    if building:  # mkdocs serve shows this version only
        config["site_dir"] = posixpath.join(config["site_dir"], version())
    config["site_name"] += " " + version()
    config["nav"] = [{"Overview": "README.md"}, *({group: pages} for group, pages in groups().items())]
    config["mdx_configs"].setdefault("toc", {}).update(slugify=slug, permalink=True)
    return config


def on_files(files, config):
    from mkdocs.structure.files import File

    known, new = set(), {path_of(file.src_uri) for file in files}
    listed = {"docs/README.md", *("docs/" + page for pages in groups().values() for page in pages)}
    for path in sorted(p for p in new - listed if p.endswith(".md")):
        log.warning("%s is not listed in docs/README.md", path)
    while new:
        path = new.pop()
        known.add(path)
        if path.endswith(".md"):
            new |= {goal for goal in linked(path) - known if (ROOT / goal).is_file()}
        if not path.startswith("docs/"):
            file = File(uri(path), str(ROOT), config["site_dir"], config["use_directory_urls"])
            file.abs_src_path = str(ROOT / path)
            files.append(file)
    return files


def on_page_markdown(markdown, page, **_):
    """Python-Markdown wants one word at a fence and an empty line before a list; links lead to files of the site."""
    here, lines = page.file.src_uri, []
    page.title = page.title.replace("`", "")  # the navigation shows it as it is

    def relink(match):
        if not match[1]:
            return match[0]
        goal = uri(target(path_of(here), match[1]))
        return f"]({posixpath.relpath(goal, posixpath.dirname(here) or '.')}{match[2] or ''})"

    text = False
    for line, outside in prose(markdown):
        if not outside and (match := FENCE.match(line)):
            line = match[1] + match[2]
        if outside and text and ITEM.match(line):
            lines.append("")
        text = outside and bool(line.strip()) and not line.startswith((" ", "|", "#")) and not ITEM.match(line)
        lines.append(LINK.sub(relink, line) if outside else line)
    return "\n".join(lines)


def list_versions(folder):
    """versions.json, which the selector in the header reads, and a first page that leads to the newest version."""
    found = sorted(
        (p.name for p in folder.iterdir() if (p / "index.html").exists()),
        reverse=True,
        key=lambda name: [int(number) for number in re.findall(r"\d+", name)],
    )
    entries = [{"version": name, "title": name, "aliases": ["latest"] if name == found[0] else []} for name in found]
    (folder / "versions.json").write_text(json.dumps(entries), encoding="utf-8")
    page = f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={found[0]}/index.html"><title>pgaq</title>\n'
    (folder / "index.html").write_text(page, encoding="utf-8")


def on_post_build(config):
    """The search finds the pages of docs/ only.  MkDocs looks at the files that links lead to, this at the places in them."""
    site = Path(config["site_dir"])
    index = site / "search/search_index.json"
    found = json.loads(index.read_text(encoding="utf-8"))
    found["docs"] = [entry for entry in found["docs"] if not entry["location"].startswith(OUTSIDE)]
    index.write_text(json.dumps(found), encoding="utf-8")
    texts = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"}
    places = {page: set(re.findall(r'\b(?:id|name)="?([^"\s>]+)', text)) for page, text in texts.items()}
    for page, text in texts.items():
        for name, place in set(re.findall(r'<a [^>]*?href="?([^"#\s:]*)#([^"\s>]+)', text)):
            goal = (page.parent / name).resolve() if name else page
            if place not in places.get(goal, ()):
                log.warning("%s: no place %s#%s", page.relative_to(site), name, place)
    if building:
        list_versions(site.parent)
