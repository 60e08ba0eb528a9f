"""Values as people read them: curves, payloads, parameters of waits, times of schedules, trees.  No HTML but what `curve` draws."""

from __future__ import annotations

import datetime
import re
import uuid
from typing import Any, Mapping
from urllib.parse import quote

from markupsafe import Markup

from pgaq import text
from pgaq.command.output import drawn, plain

WIDTH, HEIGHT = 120, 28
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKDAYS = tuple(each[:3].lower() for each in DAYS)
# the order in which a message can have been through them
STEPS = (
    ("enqueue_time", "enqueued"), ("ready_at", "ready from"), ("leased_since", "leased"), ("leased_until", "lease ends"), ("dequeue_time", "finished"),
    ("expires_at", "expires"),
)  # fmt: skip


# why a message failed
REASONS = {
    "retries": "it has used up its attempts",
    "rejected": "its consumer has rejected it",
    "expired": "it was not consumed in time",
    "lease": "its last lease ran out",
}


def quoted(word: str) -> str:
    """A value in a URL."""
    return quote(word, safe="")


def is_uuid(word: str) -> bool:
    try:
        return bool(uuid.UUID(word))
    except ValueError:
        return False


def shown(value: Any, unit: str = "text") -> str:
    """A value of a subject; of text, line ends remain."""
    return drawn(value, unit)


def mood(state: Any) -> str:
    """What a state means for people: the class of its colour.  The word stands beside it in any case."""
    word = str(state)
    if word in ("started", "active", "reachable", "connected", "running", "READY", "this node", "enabled"):
        return "good"
    return (
        "warn"
        if word
        in (
            "WAITING",
            "LOCKED",
            "LEASED",
            "starting",
            "waiting",
            "retrying",
            "connecting",
            "backing off",
            "idle",
            "away",
            "paused",
            "PROCESSED",
            "ended",
        )
        else "bad"
    )


def lines(word: str | None) -> str:
    """Text of several lines, with everything visible that is not: control characters, marks of direction."""
    return "\n".join(text.printable(line.replace("\t", "    ")) for line in (word or "").split("\n"))


def curve(values: list[float | None], name: str = "", width: int = WIDTH, height: int = HEIGHT) -> Markup:
    """A small curve as SVG; what is shown is also in its title."""
    known = [float(value) for value in values if value is not None]
    if len(known) < 2:
        return Markup("")
    top = max(known) or 1.0
    step = width / max(1, len(values) - 1)
    parts, line = [], []
    for i, value in enumerate(values):
        if value is None:
            parts, line = [*parts, line], []
        else:
            line.append(f"{i * step:.1f},{height - 1 - float(value) / top * (height - 3):.1f}")
    drawn_lines = Markup("").join(
        Markup('<polyline points="{}"/>').format(" ".join(each if len(each) > 1 else each * 2)) for each in [*parts, line] if each
    )
    title = f"{name}: now {text.number(known[-1])}, at most {text.number(max(known))}"
    return Markup(
        '<svg class="curve" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}"><title>{}</title>{}</svg>'
    ).format(width, height, title, title, drawn_lines)


def payload(word: str | None, form: str) -> str:
    """The payload as JSON with line ends, as text, or as bytes."""
    if word is None:
        return ""
    if form == "hex":
        data = word.encode()[:4096]
        rows = [data[i : i + 16] for i in range(0, len(data), 16)]
        return "\n".join(
            f"{16 * i:08x}  {row.hex(' '):<47}  {''.join(chr(c) if 32 <= c < 127 else '.' for c in row)}" for i, row in enumerate(rows)
        )
    if form == "json":
        try:
            return text.to_json(text.from_json(word), plain, 2)
        except (ValueError, RecursionError):
            pass
    return lines(word)


def timeline(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What happened to a message, in the order of time; to a dead letter: before it came into its exception queue, and since."""
    letter = row["dead_letter"] or {}
    before = [
        ("enqueue_time", f"enqueued into {letter.get('queue')}"), ("first_attempt", "first attempt"),
        ("last_attempt", "last attempt" if letter.get("attempts") != 1 else ""), ("died", f"failed: {letter.get('reason')}"),
    ]  # fmt: skip
    found = [(0, _time(letter.get(name)), words) for name, words in before if letter.get(name) and words]
    for name, words in STEPS:
        if name == "enqueue_time" and letter:
            words = "moved to the exception queue"
        elif name == "leased_since" and row["leased_by"]:
            words = f"leased by {row['leased_by']}"
        found.append((1, row[name], words))
    return [(drawn(at, "time"), words) for _, at, words in sorted((each for each in found if each[1]), key=lambda each: each[:2])]


def dead_letter(letter: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Why a message is a dead letter, without what the timeline says."""
    reason = str(letter.get("reason", ""))
    found = {
        "Reason": f"{reason}: {REASONS[reason]}" if reason in REASONS else reason,
        "Error": letter.get("error"),
        "Queue": letter.get("queue"),
        "Consumer": letter.get("consumer"),
        "Attempts": letter.get("attempts"),
    }
    known = {"reason", "error", "queue", "queue_id", "consumer", "attempts", "enqueue_time", "first_attempt", "last_attempt", "died"}
    found |= {name.replace("_", " ").capitalize(): value for name, value in letter.items() if name not in known}
    return [(name, drawn(value, "text")) for name, value in found.items() if value not in (None, "")]


def to_end(holder: Mapping[str, Any]) -> str:
    """The command that ends what holds the oldest snapshot."""
    name = "'" + str(holder["name"]).replace("'", "''") + "'"
    return {
        "session": f"SELECT pg_terminate_backend({holder['name']})",
        "prepared transaction": f"COMMIT PREPARED {name} or ROLLBACK PREPARED {name}",
        "replication slot": f"SELECT pg_drop_replication_slot({name})",
        "standby": "hot_standby_feedback = off, on the standby",
    }[holder["kind"]]


def place(finding: Mapping[str, Any], queue: str) -> tuple[str, str]:
    """The page for a finding of the doctor: its path, and what the reader does there instead of a command; "": as well."""
    rule = finding["rule"]
    if rule == "dead_letters":
        return f"dead?queue={quoted(queue)}", "See why they failed, and redrive them"
    if rule in ("old_transaction", "prepared"):
        return "waits", ""
    if rule.startswith("schedule"):
        return "schedules", ""
    if rule.startswith(("node", "link", "propagation")) or rule == "worker":
        return "cluster", ""
    return "", ""


def _time(word: Any) -> datetime.datetime | None:
    try:
        found = datetime.datetime.fromisoformat(str(word))
    except ValueError:
        return None
    return found if found.tzinfo else found.astimezone()


def parameters(session: Mapping[str, Any], queues: Mapping[int, str]) -> str:
    """P1 to P3 of a wait, with the names of queues."""
    found = []
    for number in ("p1", "p2", "p3"):
        meaning, value = session[f"{number}_meaning"], session[number]
        if not session["event"] or not meaning or value is None:
            continue
        if meaning == "queue id" and value in queues:
            found.append(f"queue {queues[value]}")
        elif "address" in meaning or meaning == "idn":
            found.append(f"{meaning} {value & 0xFFFFFFFFFFFFFFFF:x}")
        elif meaning in ("microseconds", "wait time"):
            if value >= 0:  # otherwise without a limit
                found.append(f"{text.duration(value)} at most")
        else:
            found.append(f"{meaning} {value}")
    return ", ".join(found)


def tree(sessions: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any], int]]:
    """Who waits for whom: (depth, session, how many wait for it), the blockers first.  A cycle is entered once."""
    by_pid = {each["pid"]: each for each in sessions}
    waiting: dict[int, list[dict[str, Any]]] = {}
    for each in sessions:
        if each["blocker"] is not None and each["blocker"] != each["pid"]:
            waiting.setdefault(each["blocker"], []).append(each)
    roots = [pid for pid in waiting if by_pid.get(pid, {}).get("blocker") in (None, pid) or by_pid[pid]["blocker"] not in by_pid]
    found: list[tuple[int, dict[str, Any], int]] = []
    seen: set[int] = set()

    def enter(pid: int, depth: int) -> int:
        if pid in seen or len(found) > 500:
            return 0
        seen.add(pid)
        place = len(found)
        found.append((depth, by_pid.get(pid) or {"pid": pid, "event": None, "queue": None, "role": None, "query": None, "wait_us": None, "program": None, "open": None}, 0))  # fmt: skip
        count = sum(1 + enter(each["pid"], depth + 1) for each in waiting.get(pid, []))
        found[place] = (*found[place][:2], count)
        return count

    for pid in [*roots, *waiting]:  # what is left after the roots are cycles
        enter(pid, 0)
    return found


def timing(word: str | None) -> str:
    """The usual cron expressions in words; of others, the expression."""
    fields = (word or "").split()
    if len(fields) != 5:
        return word or ""
    minute, hour, day, month, weekday = fields
    if re.fullmatch(r"\*/\d+", minute) and fields[1:] == ["*"] * 4:
        return f"every {minute[2:]} minutes"
    if fields == ["*"] * 5:
        return "every minute"
    if not minute.isdecimal():
        return word or ""
    if fields[1:] == ["*"] * 4:
        return f"every hour at minute {minute}"
    if not hour.isdecimal() or month != "*":
        return word or ""
    clock = f"{int(hour):02d}:{int(minute):02d}"
    if day == weekday == "*":
        return f"every day at {clock}"
    if day == "*" and re.fullmatch("[0-7]", weekday):
        return f"every {DAYS[int(weekday)]} at {clock}"
    if day == "*" and weekday.lower() in ("1-5", "mon-fri"):
        return f"Monday to Friday at {clock}"
    if day == "*" and weekday.lower() in WEEKDAYS:
        return f"every {DAYS[WEEKDAYS.index(weekday.lower())]} at {clock}"
    if day.isdecimal() and weekday == "*":
        return f"on day {day} of each month at {clock}"
    return word or ""
