"""The page of a report: names that are hostile, numbers with all their digits."""

from __future__ import annotations

from pgaq.report import page
from pgaq.text import from_json

EVIL = "\x1b]0;title\x07\x85\x9b31m\u202eorder\u2028\n<b onclick=\"x('y')\">&"
COLUMNS = [
    {"name": EVIL, "unit": EVIL, "type": "text"},
    {"name": "n", "unit": "s", "type": "number", "digits": 3},
    {"name": "p", "unit": "%", "type": "percent", "digits": 1},
]
CHART = {
    "title": EVIL,
    "x": {"name": EVIL, "values": [EVIL, EVIL]},
    "y": {"name": EVIL, "unit": EVIL},
    "series": [{"name": EVIL, "values": [1, 2]}, {"name": EVIL, "values": [None, 2]}],
}


def report(*rows):
    sections = [
        {"id": EVIL, "title": EVIL, "notes": [EVIL], "columns": COLUMNS, "rows": list(rows), "chart": {"kind": kind, **CHART}}
        for kind in ("area", "line", "bar", "histogram")
    ]
    advice = [{"severity": EVIL, "title": EVIL, "why": EVIL, "do": EVIL, "figures": [[EVIL, EVIL, EVIL]]}]
    return {"title": EVIL, "header": [[EVIL, EVIL]], "advice": advice, "sections": sections}


def test_hostile_names():
    """No name becomes markup, and none steers a terminal or changes the order of what is shown."""
    made = page(report([EVIL, EVIL, EVIL], [EVIL * 5, None, None]))
    assert "<b " not in made and 'onclick="' not in made and "('" not in made
    assert [c for c in made if not c.isprintable() and c not in "\n\t"] == []


def test_numbers_keep_their_digits():
    """Numbers of a document that the command has read are those of the server."""
    made = page(report(*from_json('[["a", 12345678901234567890.1234, 12.345]]')))
    assert "<td class=n>12,345,678,901,234,567,890.123</td>" in made and ">12.3</td>" in made


def test_long_names_leave_room_for_bars():
    """A queue's name of 120 characters; pointing at a bar shows it whole."""
    model = report()
    model["sections"][2]["chart"] |= {
        "x": {"name": "queue", "values": ["q" * 120, "b"]},
        "y": {"name": "rate", "unit": "s"},
        "series": [{"name": "rate", "values": [1, 2]}],
    }
    made = page(model)
    assert f"<title>{'q' * 120}, rate: 1 s</title>" in made and ' width="-' not in made
