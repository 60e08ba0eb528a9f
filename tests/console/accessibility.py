"""What a page must have for people who do not see it, use no mouse, or see few colours: WCAG 2.1 AA, as far as the HTML and the CSS show it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Iterator

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
# colours of text, and what they stand on
GROUNDS = {
    "ink": ("ground", "card", "mark", "bad-ground", "warn-ground"),
    "soft": ("ground", "card", "mark", "bad-ground", "warn-ground"),
    "link": ("ground", "card", "mark", "bad-ground", "warn-ground"),
    "bad": ("ground", "card", "mark", "bad-ground"),
    "warn": ("ground", "card", "mark", "warn-ground"),
    "good": ("ground", "card", "mark"),
    "card": ("link", "bad"),  # the words of buttons
}
# what must be seen and is no text: edges of fields, curves, marks of rows
SHAPES = {"edge": ("ground", "card"), "link": ("ground", "card"), "bad": ("card",), "warn": ("card",)}
DECORATION = {"line"}  # between things that are apart without it


@dataclass
class Element:
    """An element of a page."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    inside: list[Element | str] = field(default_factory=list)

    def get(self, name: str) -> str | None:
        return self.attributes.get(name)

    @property
    def text(self) -> str:
        if self.get("aria-hidden") == "true":
            return ""
        return " ".join(" ".join(each.text if isinstance(each, Element) else each for each in self.inside).split())

    @property
    def name(self) -> str:
        """What is said of it."""
        return (self.get("aria-label") or self.text or self.get("title") or "").strip()

    def all(self, *tags: str) -> Iterator[Element]:
        for each in self.inside:
            if isinstance(each, Element):
                if not tags or each.tag in tags:
                    yield each
                yield from each.all(*tags)

    def within(self, *tags: str) -> Element | None:
        above = self.parent
        while above and above.tag not in tags:
            above = above.parent
        return above


class Reader(HTMLParser):
    """The elements of a page; one that is not closed, or closed twice, is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = self.at = Element("", {})
        self.feed(html)
        assert self.at is self.root, f"<{self.at.tag}> is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.inside.append(made)
        if tag not in VOID:
            self.at = made

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.at.inside.append(Element(tag, {name: value or "" for name, value in attrs}, self.at))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if tag != self.at.tag and self.at.tag in ("li", "p"):  # their ends may be left out
            self.at = self.at.parent or self.root
        assert tag == self.at.tag, f"</{tag}> in <{self.at.tag}>"
        self.at = self.at.parent or self.root

    def handle_data(self, data: str) -> None:
        self.at.inside.append(data)


def complaints(html: str) -> list[str]:
    """What is wrong with a page."""
    root = Reader(html).root
    return [*_frame(root), *_names(root), *_tables(root), *_words(root)]


def _frame(root: Element) -> Iterator[str]:
    """Language, title, landmarks, headings in order, ids that are there once."""
    page = next(root.all("html"))
    if not page.get("lang"):
        yield "the page has no lang"
    if not next(root.all("title")).text:
        yield "the page has no title"
    if not any("width=device-width" in (each.get("content") or "") for each in root.all("meta")):
        yield "no viewport for phones"
    for landmark in ("header", "main", "footer"):
        if len(list(root.all(landmark))) != 1:
            yield f"there is not one <{landmark}>"
    skip = next(root.all("a"))
    if skip.get("href") != "#" + (next(root.all("main")).get("id") or "?"):
        yield "the first link does not skip to the page"
    levels = [int(each.tag[1]) for each in root.all("h1", "h2", "h3", "h4", "h5", "h6")]
    if levels.count(1) != 1 or levels[0] != 1 or any(after > before + 1 for before, after in zip(levels, levels[1:], strict=False)):
        yield f"headings are not in order: {levels}"
    yield from (
        f"id {name} is there {n} times" for name, n in Counter(each.get("id") for each in root.all() if each.get("id")).items() if n > 1
    )
    regions = Counter(each.name for each in root.all("nav") if each.get("aria-label"))
    yield from (f"navigations have the same name: {name}" for name, n in regions.items() if n > 1)
    if any(not each.get("aria-label") for each in root.all("nav")):
        yield "a navigation has no name"


def _names(root: Element) -> Iterator[str]:
    """Everything that can be used has a name, can be reached by the keyboard, and shows where the focus is."""
    for each in root.all("a", "button", "summary"):
        if not each.name:
            yield f"<{each.tag} {each.attributes}> has no name"
        if each.tag == "a" and each.get("href") is None:
            yield f"link {each.name} leads nowhere"
    for form in root.all("form"):
        names = Counter()
        for each in form.all("input", "select", "textarea"):
            if each.get("type") == "hidden":
                continue
            label = each.within("label")
            words = each.get("aria-label") or (" ".join(part for part in label.inside if isinstance(part, str)).strip() if label else "")
            if not words:
                yield f"{each.tag} {each.get('name')} has no label"
            names[words] += 1
        yield from (f"{n} fields of a form are called {words}" for words, n in names.items() if n > 1)
    for each in root.all():
        if (each.get("tabindex") or "0") not in ("0", "-1"):
            yield f"<{each.tag}> changes the order of the focus"
        if each.tag == "svg" and (each.get("role") != "img" or not each.get("aria-label")) and each.get("aria-hidden") != "true":
            yield "a drawing has no name"
        if each.tag == "img" and each.get("alt") is None:
            yield "a picture has no alt"
        if "scroll" in (each.get("class") or "").split() and (
            each.get("tabindex") != "0" or each.get("role") != "region" or not each.get("aria-label")
        ):
            yield "what scrolls cannot be reached by keys, or has no name"


def _tables(root: Element) -> Iterator[str]:
    """Each table has headers of columns and of rows, and as many cells as columns; cells have the title that phones show."""
    for table in root.all("table"):
        region = table.within("div")
        where = region.name if region and region.get("aria-label") else "a table"
        heads = list(next(table.all("thead")).all("th"))
        titles = [each.text for each in heads]
        if not all(titles) or any(each.get("scope") != "col" for each in heads):
            yield f"{where}: a column has no title or scope: {titles}"
        for row in next(table.all("tbody")).all("tr"):
            cells = [each for each in row.inside if isinstance(each, Element)]
            if sum(int(each.get("colspan") or 1) for each in cells) != len(heads):
                yield f"{where}: {len(cells)} cells in {len(heads)} columns"
            elif len(cells) == len(heads):
                if [each.get("scope") for each in cells if each.tag == "th"] != ["row"]:
                    yield f"{where}: a row has no header"
                if [each.get("data-label") for each in cells] != titles:
                    yield f"{where}: cells are called {[each.get('data-label') for each in cells]}, columns {titles}"


def _words(root: Element) -> Iterator[str]:
    """What a colour says is also said in a word."""
    for each in root.all():
        classes = set((each.get("class") or "").split())
        if each.tag == "li" and classes & {"problem", "warning", "note"} and not each.text.startswith(tuple(classes)):
            yield f"advice without its level: {each.text}"
        if "word" in classes and not each.text:
            yield "a coloured word is empty"
        if each.tag == "a" and each.get("aria-current") is None and classes & {"current", "active"}:
            yield f"that {each.text} is the current one is said by colour"


# -- colours


def palettes(css: str) -> dict[str, dict[str, str]]:
    """The colours of both schemes."""
    roots = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", each)) for each in roots)
    return {"light": light, "dark": {**light, **dark}}


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def pale(css: str) -> list[str]:
    """Colours that are too near to what they stand on, or not among those that are compared."""
    found = []
    for scheme, colours in palettes(css).items():
        for pairs, least in ((GROUNDS, 4.5), (SHAPES, 3.0)):
            for name, grounds in pairs.items():
                for ground in grounds:
                    ratio = contrast(colours[name], colours[ground])
                    if ratio < least:
                        found.append(f"{scheme}: {name} on {ground} has {ratio:.2f} : 1, less than {least}")
        found += [f"{scheme}: nothing is known of colour {name}" for name in colours.keys() - GROUNDS.keys() - SHAPES.keys() - DECORATION - {each for grounds in GROUNDS.values() for each in grounds}]  # fmt: skip
    rules = re.sub(r":root \{.*?\}", "", css, flags=re.DOTALL)
    named = r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl)a?\(|\b(?:white|black|red|green|blue|gr[ae]y|yellow|orange)\b(?!-)"
    found += [f"a colour outside of the palette: {each}" for each in re.findall(named, rules)]
    if ":focus-visible { outline: 2px" not in css:
        found.append("the focus is not seen")
    return found
