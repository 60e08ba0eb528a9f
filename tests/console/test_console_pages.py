"""The pages of the console for all people: what the HTML has, and what a real browser shows at three widths in both colour schemes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Iterator

import pytest

import accessibility
from conftest import ROOT, until
from console_server import PATHS, client, console, no_failures, people, server  # noqa: F401

webdriver = pytest.importorskip("selenium.webdriver", reason="missing: python3-selenium")

from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402


def test_pages_are_accessible(people, server, console):
    """Also those that ask, those without a login, and those that show an error."""
    boss = people["boss"]
    question = "/act/alter?queue=tales", "/act/purge?queue=tales", "/act/redrive?queue=tales&exception_queue=tales_exceptions"
    message = "/message?" + re.search(r'/message\?([^"]+)"', boss.get("/messages?queue=tales").text)[1].replace("&amp;", "&")
    more = [
        "/queues?all=1&sort=failed",
        "/dead?queue=tales_exceptions",
        message,
        *question,
        "/queue?name=nothing",
        "/nothing",
        "/queue?name=tales_exceptions",
    ]
    with server.connect() as holder:
        holder.execute("BEGIN; SELECT pg_current_xact_id()")
        pages = {path: boss.get(path).text for path in [*PATHS, *more]}
        holder.execute("ROLLBACK")
    with client(console) as stranger:
        pages["/login"] = stranger.get("/login").text
    assert {path: found for path, text in pages.items() if (found := accessibility.complaints(text))} == {}
    assert "There is no such page." in pages["/nothing"]
    assert accessibility.pale((ROOT / "python/pgaq/console/static/console.css").read_text()) == []


def test_what_is_not_accessible_is_found():
    page = """<html><head><meta name="viewport" content="width=device-width"><title>x</title></head><body><a href="#main">x</a><header></header>
        <main id="main"><h1>x</h1><h3>x</h3><form><input name="a"><label>b <input name="b"></label><label>b <input name="c"></label></form>
        <div class="scroll"><table><thead><tr><th>A</th><th></th></tr></thead><tbody><tr><td>1</td></tr></tbody></table></div>
        <svg></svg><a href="x"><i></i></a><a>y</a><li class="problem">x</li><nav></nav><i id="main"></i><b tabindex="3"></b></main><footer></footer></body></html>"""
    found = accessibility.complaints(page)
    expected = ("lang", "order: [1, 3]", "input a", "2 fields", "what scrolls", "no title or scope", "1 cells in 2", "drawing", "has no name", "nowhere", "level", "navigation has", "id main", "order of the focus")  # fmt: skip
    assert all(any(word in each for each in found) for word in expected), found
    css = (ROOT / "python/pgaq/console/static/console.css").read_text().replace(
        "--soft: #5a6675", "--soft: #8a96a5; --new: #000000"
    ) + "a { color: red; }"
    found = accessibility.pale(css)
    assert (
        len([each for each in found if each.startswith("light: soft on")]) == 5
        and round(accessibility.contrast("#000000", "#ffffff"), 2) == 21
    )
    assert {each for each in found if "soft" not in each} == {"light: nothing is known of colour new", "dark: nothing is known of colour new", "a colour outside of the palette: red"}  # fmt: skip


# -- in a browser

SIZES = ((390, 844), (820, 1180), (1400, 900))
# text whose contrast with what it stands on is too small; parts that stick out of the page; nothing of both is expected
LOOKED_AT = """
function rgb(word) { return word.match(/[\\d.]+/g).map(Number); }
function luminance(c) {
    const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function ground(e) {
    for (; e; e = e.parentElement) {
        const c = rgb(getComputedStyle(e).backgroundColor);
        if (c.length < 4 || c[3] === 1) return c.slice(0, 3);
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
}
const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement, style = getComputedStyle(e);
    if (!node.data.trim() || style.visibility !== "visible" || !e.getClientRects().length) continue;
    const [light, dark] = [luminance(rgb(style.color).slice(0, 3)), luminance(ground(e))].sort((a, b) => b - a);
    if ((light + 0.05) / (dark + 0.05) < 4.5) found.push(`${node.data.trim()}: ${style.color} on ${ground(e)}`);
}
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
if (wide > 0) found.push(`the page is ${wide} pixels too wide`);
if (innerWidth < 500) for (const e of document.querySelectorAll("main *"))
    if (e.getClientRects().length && !e.closest("svg, thead, .skip") && e.getBoundingClientRect().right > innerWidth + 1)
        found.push(`<${e.tagName.toLowerCase()} class="${e.className}"> sticks out`);
return found;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    for program in ("/usr/bin/chromium", "/usr/bin/chromedriver"):
        if not Path(program).exists():
            pytest.skip(f"missing: {program}")
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    yield made
    made.quit()


@pytest.fixture(scope="module")
def logged_in(browser, console) -> Any:  # noqa: F811
    browser.get(f"{console.url}/login")
    browser.find_element(By.NAME, "role").send_keys("boss")
    browser.find_element(By.NAME, "password").send_keys("of it all")
    browser.find_element(By.CSS_SELECTOR, "form.login button").click()
    until(lambda: "/queues" in browser.current_url, "the overview")
    return browser


def test_pages_in_a_browser(logged_in, console, people):  # noqa: F811
    """At three widths and in both schemes, text can be read, nothing sticks out, and the browser has nothing to complain about."""
    message = re.search(r'(/message\?[^"]+)"', people["boss"].get("/messages?queue=tales").text)[1].replace("&amp;", "&")
    found = {}
    for path in [*PATHS, message, "/dead?queue=tales_exceptions", "/act/alter?queue=tales", "/login"]:
        logged_in.get(console.url + path)
        for scheme in ("light", "dark"):
            features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
            logged_in.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": k, "value": v} for k, v in features.items()]})
            for width, height in SIZES:
                logged_in.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})  # fmt: skip
                if said := logged_in.execute_script(LOOKED_AT):
                    found[path, scheme, width] = said[:5]
    assert found == {}
    assert [each for each in logged_in.get_log("browser") if each["level"] == "SEVERE"] == []


def test_a_live_page_keeps_the_focus(logged_in, console, server):  # noqa: F811
    """And the place to which a table was scrolled; a page that changes every moment could not be used with the keyboard otherwise."""
    logged_in.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 820, "height": 1180, "deviceScaleFactor": 1, "mobile": False})
    logged_in.get(f"{console.url}/queue?name=tales")
    logged_in.execute_script("""
        document.querySelector('a[href*="/act/purge"]').focus();
        window.swaps = 0; document.addEventListener("htmx:sseMessage", () => swaps++);
        document.querySelector('.scroll[aria-label="Consumers"]').scrollLeft = 30;""")
    seen = """return [document.activeElement.textContent, document.querySelector('.scroll[aria-label="Consumers"]').scrollLeft]"""
    with server.connect() as conn:
        for i in range(2):
            before = int(logged_in.execute_script("return swaps"))
            conn.execute("SELECT aq.alter_queue('tales', comment => %s)", [f"change {i}"])
            until(lambda: int(logged_in.execute_script("return swaps")) > before, "the page to be replaced")
            assert logged_in.execute_script(seen) == ["Purge", 30]
        conn.execute("SELECT aq.alter_queue('tales', comment => '')")
