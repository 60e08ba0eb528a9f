"""Pause and resume in the console."""

from __future__ import annotations

import html
import re

from console_server import console, no_failures, people, server  # noqa: F401
from pgaq import db
from pgaq.console import pages


def test_resume_of_a_subscriber(people, server, monkeypatch):  # noqa: F811
    """The queue's Resume does not resume consumers that were paused by name: their rows have one."""
    boss = people["boss"]
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('fanned', multiple_consumers => true)")
        db.execute(conn, "SELECT aq.alter_queue('fanned', new_owner => 'boss')")
        db.execute(conn, "SELECT aq.subscribe('fanned', 'a&b'), aq.subscribe('fanned', 'c')")
        db.execute(conn, "SELECT aq.pause('fanned', 'a&b')")
        page = boss.get("/queue?name=fanned").text
        assert re.findall(r'/act/resume\?([^"]*)"', page) == ["queue=fanned&amp;consumer=a%26b"] and "/act/pause" in page
        assert "except those that are paused by name" in boss.get("/act/resume?queue=fanned").text
        url = html.unescape(re.search(r'/act/resume\?[^"]*', page)[0])
        csrf = re.search('name="csrf" value="([^"]+)"', boss.get(url).text)[1]
        assert boss.post(url, data={"csrf": csrf, "queue": "fanned", "consumer": "a&b"}).status_code == 303
        page = boss.get("/queue?name=fanned").text
        assert "/act/resume" not in page and "/act/pause" in page
        monkeypatch.setattr(pages, "CAN_PAUSE", "SELECT false")
        assert "/act/pause" not in boss.get("/queue?name=fanned").text
        db.execute(conn, "SELECT aq.drop_queue('fanned')")
