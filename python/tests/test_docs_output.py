"""The output below the examples of the documentation (tools/docs.py --run)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import docs

ID = "0f0e0d0c-0000-0000-0000-00000000000{}"


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("# Page\n\n```sql\nSELECT 1;\n```\n\nText.\n\n```sql no-run\nSELECT 2;\n```\n")
    return path


def test_output_stands_below_its_example(page):
    page.write_text(docs.with_outputs(page, {3: " one\n-----\n 1"}))
    assert page.read_text() == (
        "# Page\n\n```sql\nSELECT 1;\n```\n```output\n one\n-----\n 1\n```\n\nText.\n\n```sql no-run\nSELECT 2;\n```\n"
    )
    assert docs.with_outputs(page, {3: ""}) == "# Page\n\n```sql\nSELECT 1;\n```\n\nText.\n\n```sql no-run\nSELECT 2;\n```\n"


@pytest.mark.parametrize(
    "old, new, same",
    [
        (f" id\n----\n {ID.format(1)}", f" id\n------\n {ID.format(2)}", True),
        (" 2026-11-29 22:00:00+00", " 2027-01-01 10:11:12.123+00", True),
        (" rate 0.51", " rate 12.5", True),
        (" ready\n 1", " ready\n 2", False),
    ],
)
def test_ids_times_and_fractions_may_differ(page, old, new, same):
    before = docs.with_outputs(page, {3: old})
    page.write_text(before)
    assert (docs.with_outputs(page, {3: new}) == before) == same


def test_what_varies_is_not_compared(page):
    page.write_text("```sql varies\nSELECT 1;\n```\n```output\n 1\n```\n")
    assert docs.with_outputs(page, {1: " 2"}) == page.read_text()
    assert docs.with_outputs(page, {1: ""}) != page.read_text()


def test_what_is_shown():
    output = (
        "---- docs/page.md:3\n create_queue \n--------------\n \n(1 row)\n\n a \n---\n 1 \n(1 row)\n\n"
        '---- docs/page.md:9\npsql:<stdin>:12: ERROR:  queue "x" does not exist\nHINT:  Create it.\n'
    )
    assert docs.printed(output) == {3: " a\n---\n 1\n(1 row)", 9: 'ERROR:  queue "x" does not exist\nHINT:  Create it.'}
