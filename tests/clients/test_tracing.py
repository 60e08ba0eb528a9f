"""pgaq.tracing: spans of OpenTelemetry, from the sender to the worker, with the exporter in memory of its SDK."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from pgaq import db, places

# its typing_extensions is newer than that of Debian 12
sys.path.insert(0, str(places.OPENTELEMETRY))
sys.modules.pop("typing_extensions", None)
pytest.importorskip("opentelemetry.sdk.trace", reason="missing: OpenTelemetry for Python, see tools/setup")

from opentelemetry import trace  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

from pgaq import tracing  # noqa: E402

PROVIDER = TracerProvider()
EXPORTER = InMemorySpanExporter()
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))
trace.set_tracer_provider(PROVIDER)
TRACER = trace.get_tracer("test")


@pytest.fixture(autouse=True)
def spans():
    """The spans that have ended, in this order."""
    EXPORTER.clear()
    return EXPORTER.get_finished_spans


def named(spans, name):
    found = [each for each in spans() if each.name == name]
    assert found, [each.name for each in spans()]
    return found


def seen(span):
    """Attributes without those that all have."""
    assert span.attributes["messaging.system"] == "pgaq"
    operation = span.attributes["messaging.operation.name"]
    assert operation == span.attributes["messaging.operation.type"] == span.name.partition(" ")[0]
    assert span.name == f"{operation} {span.attributes['messaging.destination.name']}"
    names = ("messaging.system", "messaging.operation.name", "messaging.operation.type", "messaging.destination.name")
    return {name.removeprefix("messaging."): value for name, value in span.attributes.items() if name not in names}


def send(conn, queue, payload, **more):
    with tracing.send(queue, **more) as sent:
        sent.id = db.value(conn, "SELECT aq.enqueue(%s, %s, properties => %s)", [queue, json.dumps(payload), sent.properties])
    return str(sent.id)


def dequeue(conn, queue, number=1, options=""):
    with tracing.receive(queue) as received:
        received.messages = db.rows(conn, f"SELECT * FROM aq.dequeue(%s, max_messages => %s{options})", [queue, number])
    return received.messages


def linked(span):
    return [link.context.span_id for link in span.links]


def test_from_sender_to_worker(conn, queue, spans):
    """One trace: the order, its message, and the worker that gets it; the links lead to the creation."""
    with TRACER.start_as_current_span("order"):
        msgid = send(conn, queue, 1, correlation="c-1", properties={"k": 1})
    (message,) = dequeue(conn, queue)
    with tracing.process(queue, message, consumer="x") as span:
        assert trace.get_current_span() is span
    order, sent, received, processed = (
        named(spans, "order")[0],
        *(named(spans, f"{each} {queue}")[0] for each in ("send", "receive", "process")),
    )
    assert message["properties"]["k"] == 1 and message["properties"]["traceparent"].split("-")[2] == f"{sent.context.span_id:016x}"
    assert (sent.kind.name, seen(sent)) == ("PRODUCER", {"message.id": msgid, "message.conversation_id": "c-1"})
    assert (received.kind.name, seen(received)) == ("CLIENT", {"batch.message_count": 1})
    assert (processed.kind.name, seen(processed)) == (
        "CONSUMER",
        {"message.id": msgid, "destination.subscription.name": "x", "pgaq.message.attempts": 0},
    )
    assert sent.parent.span_id == order.context.span_id
    assert linked(received) == linked(processed) == [sent.context.span_id] and received.links[0].attributes["messaging.message.id"] == msgid
    assert received.parent is None and processed.parent.span_id == sent.context.span_id
    assert order.context.trace_id == sent.context.trace_id == processed.context.trace_id != received.context.trace_id


def test_the_program_of_the_page(server, conn, spans, capsys):
    """docs/opentelemetry.md: what it prints, and its spans."""
    (program,) = re.findall(r"```python\n(.*?)```", (places.ROOT / "docs" / "opentelemetry.md").read_text(), re.S)
    assert "dbname=shop" in program
    conn.execute("SELECT aq.create_queue('traced')")
    try:
        exec(program.replace("dbname=shop", server.conninfo()), {})
    finally:
        conn.execute("SELECT aq.drop_queue('traced', force => true)")
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "2", "3", "{'n': 1}"]
    made = ["send", "create", "create", "send", "receive", *["process", "settle"] * 3]
    assert [each.name for each in spans()] == [f"{name} traced" for name in made]


def test_process_within_a_span(conn, queue, spans):
    """A worker with a trace of its own keeps it; the link is there."""
    send(conn, queue, 1)
    with TRACER.start_as_current_span("round"):
        (message,) = dequeue(conn, queue)
        with tracing.process(queue, message):
            pass
    outer, processed, sent = named(spans, "round")[0], named(spans, f"process {queue}")[0], named(spans, f"send {queue}")[0]
    assert processed.parent.span_id == outer.context.span_id and linked(processed) == [sent.context.span_id]


def test_sender_rolls_back(conn, queue, spans):
    """A transaction that rolls back: its span says so, no message has its context, and that of the retry is the retry's."""
    for attempt in (1, 2):
        try:
            with TRACER.start_as_current_span("order"), conn.transaction():
                send(conn, queue, attempt)
                db.execute(conn, "SELECT 1 / %s", [attempt - 1])
        except db.Error as error:
            assert (attempt, db.said(error)[0]) == (1, "22012")
    first, second = named(spans, "order")
    assert [each.status.status_code.name for each in (first, second)] == ["ERROR", "UNSET"]
    (message,) = dequeue(conn, queue, 10)
    with tracing.process(queue, message):
        pass
    assert message["payload"] == 2
    processed = named(spans, f"process {queue}")[0]
    sent = {each.parent.span_id: each.context.span_id for each in named(spans, f"send {queue}")}
    assert linked(processed) == [sent[second.context.span_id]] and processed.context.trace_id == second.context.trace_id


def test_worker_rolls_back(conn, queue, spans):
    """Each attempt is a span, with its number, in the trace of the message."""
    db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '0')", [queue])
    send(conn, queue, 1)
    for attempt in (1, 2):
        try:
            with conn.transaction():
                (message,) = dequeue(conn, queue, options=", wait => '1 minute'")
                with tracing.process(queue, message):
                    1 / (attempt - 1)
        except ZeroDivisionError:
            assert attempt == 1
    failed, done = named(spans, f"process {queue}")
    sent = named(spans, f"send {queue}")[0]
    assert [seen(each)["pgaq.message.attempts"] for each in (failed, done)] == [0, 1]
    assert (failed.status.status_code.name, failed.status.description, failed.attributes["error.type"]) == (
        "ERROR",
        "division by zero",
        "ZeroDivisionError",
    )
    assert done.status.status_code.name == "UNSET" and "error.type" not in done.attributes
    assert linked(failed) == linked(done) == [sent.context.span_id]


def test_batch(conn, queue, spans):
    """Messages that are sent together: each has a span of its own, which it carries."""
    with tracing.send_batch(queue, [{"k": 1}, None]) as batch:
        batch.ids(db.value(conn, "SELECT aq.enqueue_array(%s, ARRAY['1', '2'], options => %s)", [queue, batch.options]))
    created, (sent,) = named(spans, f"create {queue}"), named(spans, f"send {queue}")
    assert [each.kind.name for each in (*created, sent)] == ["PRODUCER", "PRODUCER", "CLIENT"]
    assert seen(sent) == {"batch.message_count": 2} and linked(sent) == [each.context.span_id for each in created]
    got = dequeue(conn, queue, 10)
    assert {str(each.id) for each in batch.messages} == {str(each["msgid"]) for each in got}
    received = named(spans, f"receive {queue}")[0]
    assert seen(received) == {"batch.message_count": 2} and sorted(linked(received)) == sorted(linked(sent))


def test_settle(conn, queue, spans):
    """Leases: acknowledge and reject."""
    for n in (1, 2, 3):
        send(conn, queue, n)
    first, *others = dequeue(conn, queue, 3, ", lease => '1 minute'")
    with tracing.settle(queue, [first]):
        db.execute(conn, "SELECT aq.acknowledge(%s, ARRAY[%s], %s)", [queue, first["msgid"], first["receipt"]])
    with tracing.settle(queue, others, "reject", consumer="x"):
        db.execute(conn, "SELECT aq.reject(%s, %s, %s)", [queue, [each["msgid"] for each in others], others[0]["receipt"]])
    one, two = named(spans, f"settle {queue}")
    assert (one.kind.name, len(one.links), len(two.links)) == ("CLIENT", 1, 2)
    assert seen(one) == {"pgaq.settlement": "acknowledge", "message.id": str(first["msgid"]), "pgaq.message.attempts": first["attempts"]}
    assert seen(two) == {"pgaq.settlement": "reject", "batch.message_count": 2, "destination.subscription.name": "x"}


def test_context_of_others(conn, queue, spans):
    """A message with a context keeps it: the send links to it.  Session: all messages of a transaction, also those of SQL."""
    with TRACER.start_as_current_span("elsewhere"):
        given = tracing.current()
    send(conn, queue, 1, properties=given)
    elsewhere, sent = named(spans, "elsewhere")[0], named(spans, f"send {queue}")[0]
    assert sent.kind.name == "CLIENT" and linked(sent) == [elsewhere.context.span_id]
    with TRACER.start_as_current_span("transaction") as span, conn.transaction():
        tracing.session(conn)
        db.execute(conn, "SELECT aq.enqueue(%s, '2')", [queue])
    db.execute(conn, "SELECT aq.enqueue(%s, '3')", [queue])
    tracing.session(conn, local=False)
    got = {each["payload"]: tracing.link_to(each) for each in dequeue(conn, queue, 10)}
    assert got[1].context.span_id == elsewhere.context.span_id and got[2].context.span_id == span.context.span_id and got[3] is None


@pytest.mark.parametrize(
    "properties", [None, "", "{", "[1]", {"traceparent": 1}, {"traceparent": "x"}, [1], '{"traceparent": "x"}', '"x"', "[" * 100_000]
)
def test_no_context(spans, properties):
    """What is no trace context is none; the span begins a trace."""
    for message in ({"properties": properties}, type("Row", (), {"properties": properties})(), ()):
        assert tracing.link_to(message) is None
    with tracing.process("q", {"properties": properties}):
        pass
    assert spans()[0].parent is None and not spans()[0].links


def test_text_and_attributes(spans):
    """Drivers that give JSON as text, and rows with attributes."""
    with tracing.send("q") as sent:
        pass
    for message in ({"properties": sent.properties}, type("Row", (), {"properties": sent.values, "msgid": "m"})()):
        assert tracing.link_to(message).context.span_id == sent.span.context.span_id


def test_without_opentelemetry():
    """The module can be imported; what is called says what to install."""
    program = """
import sys
sys.modules["opentelemetry"] = None
from pgaq import tracing
for call in (lambda: tracing.send("q").__enter__(), lambda: tracing.create("q").__enter__(), lambda: tracing.send_batch("q", [None]).__enter__(), lambda: tracing.receive("q").__enter__(),
             lambda: tracing.process("q", {}).__enter__(), lambda: tracing.settle("q", []).__enter__(), lambda: tracing.session(None), lambda: tracing.link_to({}), tracing.current):
    try:
        call()
    except tracing.Missing as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout == "pgaq.tracing needs the package opentelemetry-api: pip install 'pgaq[tracing]'\n" * 9
