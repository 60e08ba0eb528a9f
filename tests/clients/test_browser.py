"""Reports in a real browser: every chart is drawn, in both colour schemes, whatever the names in it are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from pgaq import db
from pgaq.report import page

HOSTILE = "<script>document.title = 'taken'</script> & \"x\" 'y' %s"
TIMES = ["15:00", "15:05", "15:10", "15:15"]


def chart(kind: str, title: str, x: list[str], **series: list[float | None]) -> dict[str, Any]:
    named = [{"name": name, "values": values} for name, values in series.items()]
    return {"kind": kind, "title": title, "x": {"name": "x", "values": x}, "y": {"name": "rate", "unit": "/s"}, "series": named}


def section(name: str, drawn: dict[str, Any] | None, *table: list[Any]) -> dict[str, Any]:
    """A section with a chart and a table: rows, or columns and rows."""
    columns: list[Any] = [
        {"name": "Event", "unit": "", "type": "text"}, {"name": "Waits", "unit": "", "type": "number", "digits": 0},
        {"name": "Share", "unit": "%", "type": "percent", "digits": 1},
    ]  # fmt: skip
    columns, rows = table if len(table) == 2 else (columns, table[0]) if table else ([], [])
    return {"id": name, "title": name, "notes": [HOSTILE], "columns": columns, "rows": rows, "chart": drawn}


WAIT_CLASSES = [
    "DB CPU",
    "Application",
    "Commit",
    "Concurrency",
    "Configuration",
    "Network",
    "Other",
    "PostgreSQL, not timed",
    "System I/O",
    "User I/O",
]
# as many columns as the widest table of a report has, and a long text
WIDE = (
    [{"name": f"Total Time {n}", "unit": "s/s", "type": "number", "digits": 3} for n in range(12)]
    + [{"name": "SQL Text", "unit": "", "type": "text"}],
    [[*[123456.789] * 12, "SELECT " + "dbms_workload_repository.awr_report_text(1, 2), " * 6]],
)

MODEL = {
    "kind": "awr",
    "title": "Report " + HOSTILE,
    "header": [["Database", HOSTILE], ["Elapsed", "60.0 min"]],
    "advice": [{"rule": "r", "severity": HOSTILE, "title": HOSTILE, "why": HOSTILE, "do": HOSTILE, "figures": [[HOSTILE, 1, HOSTILE]]}],
    "sections": [
        section("area", chart("area", "a", TIMES, CPU=[1, 2, 3, 1], Commit=[0, 1, None, 2])),
        section("line", chart("line", "l", TIMES, put=[4e9, 5e9, None, 5e9], got=[1, 2, 3, 4])),
        section("bar", chart("bar", HOSTILE, [HOSTILE, "b"], time=[10, 0])),
        section("pair", chart("bar", "two of each", ["a", "b"], first=[10, 5], second=[5, 10])),
        section("histogram", chart("histogram", "h", ["1 us", "2 us"], before=[0.0001, 0.0002], after=[0, 0.0003])),
        section("one", chart("area", "one point of time", ["15:00"], CPU=[1], Commit=[2])),
        section("nothing", chart("line", "no point of time", [], CPU=[])),
        section("zero", chart("area", "all zero", TIMES, CPU=[0, 0, 0, 0])),
        section("wait classes", chart("area", "w", TIMES[:1], **{name: [1] for name in WAIT_CLASSES})),
        section("long", chart("area", "many points of time", [str(n) for n in range(25)], CPU=[1] * 25, Commit=[n for n in range(25)])),
        section("wide", None, *WIDE),
        section("table", None, [[HOSTILE, 1234567, 14.53], [None, None, None], ["b", -3, 130]]),
    ],
}

# what a page must show: for each section with a chart the marks that are drawn and seen
MARKS = """
return Array.from(document.querySelectorAll('section[id]')).map(s => [s.id,
    Array.from(s.querySelectorAll('svg rect:not(.hover), svg polygon, svg polyline, svg circle')).filter(m => {
        const box = m.getBoundingClientRect();
        return box.width > 0 && getComputedStyle(m).visibility == 'visible';
    }).length])
"""
COLORS = "return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
# parts of a chart that reach out of it
CLIPPED = """
return Array.from(document.querySelectorAll('svg')).flatMap(svg => {
    const all = svg.getBoundingClientRect();
    return Array.from(svg.querySelectorAll('text, circle, rect:not(.hover)')).filter(e => {
        const box = e.getBoundingClientRect();
        return box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 1 || box.bottom > all.bottom + 1;
    }).map(e => e.textContent)
})
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--window-size=1200,900", f"--user-data-dir={tmp_path_factory.mktemp('browser')}",
    ]:  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    yield driver
    driver.quit()


def save(tmp_path: Path, model: dict[str, Any] = MODEL) -> str:
    """The report as a page; its address."""
    file = tmp_path / "report.html"
    file.write_text(page(model), encoding="utf-8")
    return file.as_uri()


def brightness(color: str) -> float:
    """Relative luminance of "rgb(r, g, b)" (WCAG 2)."""
    parts = [int(part) / 255 for part in color.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def show(browser: webdriver.Chrome, address: str, scheme: str, media: str = "screen") -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    browser.get(address)


def requested(browser: webdriver.Chrome) -> list[str]:
    """Addresses that the page has asked for."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


def test_charts_are_drawn(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Every chart with something to draw shows it, within its frame; the others say that there is nothing."""
    show(browser, save(tmp_path), "light")
    marks = {
        "area": 6, "line": 3, "bar": 1, "pair": 4, "histogram": 3, "one": 2, "nothing": 0, "zero": 0, "wait classes": 10, "long": 2, "wide": 0, "table": 0, "advice": 0,
    }  # fmt: skip
    assert dict(browser.execute_script(MARKS)) == marks
    assert browser.execute_script("return document.querySelector('#nothing .empty').textContent") == "nothing to draw"
    assert browser.execute_script(CLIPPED) == []


def test_bars_begin_at_zero(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Bars of two series stand one below the other, all from zero: their length is the value, and each has its number."""
    show(browser, save(tmp_path), "light")
    bars = browser.execute_script(
        "return Array.from(document.querySelectorAll('#pair svg rect')).map(b => ['x', 'y', 'width'].map(a => Number(b.getAttribute(a))))"
    )
    assert [x for x, _, _ in bars] == [0] * 4
    assert [y for _, y, _ in bars] == sorted({y for _, y, _ in bars})
    widths = [width for _, _, width in bars]
    assert widths[0] == widths[3] > 0 and widths[1] == widths[2] == pytest.approx(widths[0] / 2, abs=0.1)
    numbers = browser.execute_script("return Array.from(document.querySelectorAll('#pair svg .total')).map(t => t.textContent)")
    assert numbers == ["10 /s", "5 /s", "5 /s", "10 /s"]


def test_colors_differ(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """No two parts of DB time have the same colour."""
    show(browser, save(tmp_path), "light")
    script = "return Array.from(document.getElementById('wait classes').querySelectorAll('svg rect')).map(p => getComputedStyle(p).fill)"
    colors = browser.execute_script(script)
    assert len(colors) == len(set(colors)) == len(WAIT_CLASSES)


def test_small_screen(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """On a telephone the page is as wide as the screen, what is wider scrolls in itself, and the words in charts can still be read."""
    address = save(tmp_path)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False})
    try:
        show(browser, address, "light")
        assert browser.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert browser.execute_script("return document.querySelector('#area svg text.x').getBoundingClientRect().height") >= 10
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_page_needs_nothing(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """No script error, no script from a name, nothing fetched but the page itself."""
    address = save(tmp_path)
    browser.get_log("browser"), browser.get_log("performance")
    show(browser, address, "light")
    assert browser.title == MODEL["title"]
    assert browser.execute_script("return document.scripts.length") == 0
    assert browser.get_log("browser") == []
    assert requested(browser) == [address]


def test_numbers(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Thousands are separated, what is null is empty, names are shown as they are."""
    show(browser, save(tmp_path), "light")
    cells = "return Array.from(document.querySelectorAll('#table td')).map(c => c.textContent)"
    assert browser.execute_script(cells) == [HOSTILE, "1,234,567", "14.5", "", "", "", "b", "-3", "130.0"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_color_schemes(browser: webdriver.Chrome, tmp_path: Path, scheme: str) -> None:
    """The page takes the reader's scheme, and its text can be read: a contrast of 7 (WCAG level AAA)."""
    show(browser, save(tmp_path), scheme)
    background, ink = map(brightness, browser.execute_script(COLORS))
    assert (background > ink) == (scheme == "light")
    assert (max(background, ink) + 0.05) / (min(background, ink) + 0.05) >= 7
    assert dict(browser.execute_script(MARKS))["area"] == 6


def test_paper(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Printed, also from a dark screen, it is dark on white and without the list of links."""
    show(browser, save(tmp_path), "dark", "print")
    background, ink = map(brightness, browser.execute_script(COLORS))
    assert background == 1 and ink == 0
    assert browser.execute_script("return getComputedStyle(document.querySelector('nav')).display") == "none"


def test_paper_holds_it_all(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Nothing runs off the narrower sheet, Letter, lying, with margins of a centimetre: 979 pixels."""
    address = save(tmp_path)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 979, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
    try:
        show(browser, address, "light", "print")
        assert browser.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


REPORTS = {"awr": "aq.report_awr({0}, {2})", "awr_diff": "aq.report_awr_diff({0}, {1}, {1}, {2})", "rtpctx": "aq.report_rtpctx({0}, {2})"}


@pytest.fixture(scope="module")
def snapshots(server: Any) -> list[int]:
    """Three of them, with work in between."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('reported')")
        taken = [db.value(conn, "SELECT aq.take_snapshot()")]
        for _ in range(2):
            for _ in range(20):
                conn.execute("SELECT aq.enqueue('reported', '{}'::jsonb)")
                conn.execute("SELECT aq.dequeue('reported')")
            taken.append(db.value(conn, "SELECT aq.take_snapshot()"))
        return taken


@pytest.mark.parametrize("kind", REPORTS)
def test_real_report(server: Any, browser: webdriver.Chrome, tmp_path: Path, snapshots: list[int], kind: str) -> None:
    """Every report is drawn whole: its sections in order, a figure for each chart, marks in those that have values above zero."""
    with server.connect() as conn:
        model = db.value(conn, f"SELECT {REPORTS[kind].format(*snapshots)}")
    address = save(tmp_path, model)
    browser.get_log("browser"), browser.get_log("performance")
    show(browser, address, "light")
    marks = [tuple(found) for found in browser.execute_script(MARKS) if found[0] != "advice"]
    assert [name for name, _ in marks] == [section["id"] for section in model["sections"]]
    for section in model["sections"]:
        values = [value for one in (section["chart"] or {"series": []})["series"] for value in one["values"] if value]
        assert (dict(marks)[section["id"]] > 0) == bool(values), section["id"]
    assert browser.execute_script(CLIPPED) == []
    assert browser.get_log("browser") == []
    assert requested(browser) == [address]
