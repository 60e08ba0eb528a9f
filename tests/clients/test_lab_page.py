"""The lab's report in a real browser: every card is drawn, in both colour schemes, on narrow screens and on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from pgaq.lab import collect, experiment, page, run
from test_browser import brightness, browser, show  # noqa: F401

MACHINE = {"cpus": 2, "cpu_model": "a processor", "memory_mb": 1024, "kernel": "a kernel"}
COLORS = "return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
# of each figure: width, and the marks that are seen
DRAWN = """
return Array.from(document.querySelectorAll('article')).map(a => [a.id, a.getBoundingClientRect().width,
    a.querySelectorAll('svg').length, Array.from(a.querySelectorAll('svg path, svg use')).filter(m => m.getBoundingClientRect().width > 0).length])
"""
INKS = "return Array.from(new Set(Array.from(document.querySelectorAll('svg text')).map(t => getComputedStyle(t).fill)))"
TWICE = "const ids = Array.from(document.querySelectorAll('[id]')).map(e => e.id); return ids.filter((id, i) => ids.indexOf(id) != i)"
WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


def records(sources: list[experiment.Source]) -> list[dict[str, Any]]:
    """Measurements of every point in which every metric grows with the point's number."""
    found = []
    for source in sources:
        chosen = list(source.experiments.values())
        metrics = {
            (name or e.run, metric) for e in chosen if not e.cannot
            for text in e.predicates() for c in collect.predicates.parse(text) for side in (c.left, c.right)
            for name, metric in collect.predicates.names(side) if name != "published"
        }  # fmt: skip
        metrics |= {
            (name or e.run, metric)
            for e in chosen
            for text in [*e.draw, *e.figures()]
            for name, metric in collect.predicates.names(collect.predicates.expression(text))
        }
        for number, task in enumerate(run.tasks([source], chosen, "quick", 2)):
            values = {metric: 10.0 + number for name, metric in metrics if name == task.run.name}
            values |= {metric: [[1, 2], [2, 4], [4, 5]] for metric in values if metric == "steps" or metric.endswith("_histogram")}
            found.append(
                {
                    "source": source.number, "run": task.run.name, "workload": task.run.workload, "point": task.point, "repeat": task.repeat, "key": task.key,
                    "settings": {"a": "b"}, "seconds": task.seconds, "metrics": values, "other_cpu": 0.25, "report": "report.html" if task.run.report else None,
                }
            )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    output = tmp_path_factory.mktemp("lab")
    sources = experiment.load()
    (output / "runs").mkdir()
    (output / "run.json").write_text(
        json.dumps({"profile": "quick", "experiments": [], "began": "2026-01-01T00:00", "commit": "x", "machine": MACHINE})
    )
    for number, record in enumerate(records(sources)):
        (output / "runs" / f"{number:04}.json").write_text(json.dumps(record))
    found = collect.collect(sources, output)
    return found, page.write(found, Path(output)).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_card_is_drawn(browser: webdriver.Chrome, results: tuple[dict[str, Any], str], scheme: str) -> None:  # noqa: F811
    found, address = results
    show(browser, address, scheme)
    browser.get_log("browser")
    browser.get(address)
    assert browser.get_log("browser") == []
    drawn = {name: (width, figures, marks) for name, width, figures, marks in browser.execute_script(DRAWN)}
    assert set(drawn) == {card["id"] for card in found["cards"]}
    for card in found["cards"]:
        width, figures, marks = drawn[card["id"]]
        assert width > 200
        assert figures == bool(card["series"]) and (marks > 10 or not figures), card["id"]
    paper, ink = browser.execute_script(COLORS)
    assert (brightness(paper) > brightness(ink)) == (scheme == "light")
    assert browser.execute_script(INKS) in ([ink], [])
    assert browser.execute_script(TWICE) == []
    assert len(browser.find_elements(By.CSS_SELECTOR, "#verdicts + div tbody tr")) == len(found["cards"])


def test_narrow_and_printed(browser: webdriver.Chrome, results: tuple[dict[str, Any], str]) -> None:  # noqa: F811
    _, address = results
    show(browser, address, "light")
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True})
    try:
        assert browser.execute_script(WIDE) <= 0, "only tables and figures scroll sideways"
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    show(browser, address, "dark", "print")
    assert browser.execute_script("return document.querySelectorAll('article').length") > 0


def test_keyboard_and_names(browser: webdriver.Chrome, results: tuple[dict[str, Any], str]) -> None:  # noqa: F811
    """The first stop of the keyboard leads to the content; each card and each figure has a name; links lead somewhere."""
    _, address = results
    show(browser, address, "light")
    first = browser.execute_script("return document.querySelector('a').getAttribute('href')")
    assert first == "#main"
    nameless = "return Array.from(document.querySelectorAll('article, figure, [role=region]')).filter(e => !e.ariaLabel && !document.getElementById(e.getAttribute('aria-labelledby'))).length"
    assert browser.execute_script(nameless) == 0
    lost = "return Array.from(document.querySelectorAll('a[href^=\"#\"]')).filter(a => !document.getElementById(a.getAttribute('href').slice(1))).map(a => a.href)"
    assert browser.execute_script(lost) == []
