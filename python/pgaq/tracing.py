"""Spans of OpenTelemetry for messages, by its semantic conventions of messaging; needs opentelemetry-api.

    with conn.transaction(), tracing.send("orders") as sent:
        sent.id = conn.execute("SELECT aq.enqueue('orders', %s, properties => %s)", [payload, sent.properties]).fetchone()[0]

    with tracing.receive("orders") as received:
        received.messages = conn.execute("SELECT * FROM aq.dequeue('orders')").fetchall()  # row_factory=dict_row
    for message in received.messages:
        with tracing.process("orders", message):
            ...

The functions know no driver: messages are mappings, or objects with attributes, of the columns of aq.dequeue.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any, Iterable, Iterator, Mapping, Sequence

try:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    trace = None  # type: ignore[assignment]

__all__ = ["Batch", "Missing", "Received", "Sent", "context_of", "create", "current", "link_to", "process", "receive", "send", "send_batch", "session", "settle"]  # fmt: skip

SYSTEM = "pgaq"
NAMES = ("traceparent", "tracestate")


class Missing(ImportError):
    """The package opentelemetry-api is not installed."""

    def __init__(self) -> None:
        super().__init__("pgaq.tracing needs the package opentelemetry-api: pip install 'pgaq[tracing]'")


def _tracer(provider: TracerProvider | None) -> Tracer:
    if trace is None:
        raise Missing
    return trace.get_tracer("pgaq", tracer_provider=provider)


# -- the trace context of a message


def _value(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _carrier(message: Any) -> dict[str, str]:
    """What a message carries; drivers give its properties as an object or as text."""
    properties = _value(message, "properties")
    if isinstance(properties, (str, bytes)):
        try:
            properties = json.loads(properties)
        except (ValueError, RecursionError):
            properties = None
    given = properties if isinstance(properties, Mapping) else {}
    return {name: given[name] for name in NAMES if isinstance(given.get(name), str)}


def context_of(message: Any) -> Context:
    """The context in which the message was created; an empty one if it has none, or one that is invalid."""
    if trace is None:
        raise Missing
    return TraceContextTextMapPropagator().extract(_carrier(message), Context())


def link_to(message: Any, attributes: Mapping[str, Any] | None = None) -> Link | None:
    """A link to the span that has created the message."""
    creation = context_of(message)
    found = trace.get_current_span(creation).get_span_context()
    return Link(found, attributes) if found.is_valid else None


def current() -> dict[str, str]:
    """The traceparent of the current span, and its tracestate if it has one; empty without a current span."""
    if trace is None:
        raise Missing
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier


def session(conn: Any, local: bool = True) -> None:
    """Sets pgaq.traceparent and pgaq.tracestate to the current span, for the transaction, or for the session.

    All messages that are enqueued then carry it, also those of triggers and functions.  Without a span they are reset.
    """
    carrier = current()
    query = "SELECT set_config('pgaq.traceparent', %s, %s), set_config('pgaq.tracestate', %s, %s)"
    with contextlib.closing(conn.cursor()) as cursor:
        cursor.execute(query, (carrier.get("traceparent", ""), local, carrier.get("tracestate", ""), local))


# -- spans


def _attributes(operation: str, queue: str | None, **more: Any) -> dict[str, Any]:
    found = {"messaging.system": SYSTEM, "messaging.operation.name": operation, "messaging.operation.type": operation}
    if queue is not None:
        found["messaging.destination.name"] = queue
    return found | {name: value for name, value in more.items() if value is not None}


def _of_message(message: Any) -> dict[str, Any]:
    """Attributes of one message, on its span or on the link to it."""
    names = {
        "messaging.message.id": "msgid",
        "messaging.message.conversation_id": "correlation",
        "messaging.pgaq.message.attempts": "attempts",
    }
    found = {attribute: _value(message, name) for attribute, name in names.items()}
    return {name: value if isinstance(value, int) else str(value) for name, value in found.items() if value is not None}


def _links(messages: Iterable[Any]) -> list[Link]:
    return [link for link in (link_to(each, _of_message(each)) for each in messages) if link is not None]


@contextlib.contextmanager
def _span(
    provider: TracerProvider | None,
    operation: str,
    queue: str | None,
    kind: str,
    attributes: Mapping[str, Any],
    links: Sequence[Link] = (),
    parent: Context | None = None,
) -> Iterator[Span]:
    tracer = _tracer(provider)
    with tracer.start_as_current_span(
        f"{operation} {queue}" if queue is not None else operation, parent, SpanKind[kind], attributes, links,
        record_exception=False, set_status_on_exception=False,
    ) as span:  # fmt: skip
        try:
            yield span
        except BaseException as error:
            if not isinstance(error, GeneratorExit):
                kind_of = type(error)
                span.set_attribute(
                    "error.type", kind_of.__name__ if kind_of.__module__ == "builtins" else f"{kind_of.__module__}.{kind_of.__qualname__}"
                )
                span.set_status(Status(StatusCode.ERROR, str(error)))
            raise


class Sent:
    """A message that is being sent: its properties, to be passed to aq.enqueue; set `id` to what that returns."""

    def __init__(self, span: Span, properties: Mapping[str, Any] | None) -> None:
        own = dict(properties or {})
        self.span = span
        self.values: dict[str, Any] = own if any(name in own for name in NAMES) else {**own, **current()}
        self._id: Any = None

    @property
    def properties(self) -> str:
        """As JSON."""
        return json.dumps(self.values)

    @property
    def id(self) -> Any:
        return self._id

    @id.setter
    def id(self, value: Any) -> None:
        self._id = value
        if value is not None:
            self.span.set_attribute("messaging.message.id", str(value))


@contextlib.contextmanager
def send(
    queue: str, properties: Mapping[str, Any] | None = None, *, correlation: str | None = None, provider: TracerProvider | None = None
) -> Iterator[Sent]:
    """A span "send", of one message: its context is that of the message, unless `properties` have one."""
    if trace is None:
        raise Missing
    own = link_to({"properties": properties})
    attributes = _attributes("send", queue, **{"messaging.message.conversation_id": correlation})
    with _span(provider, "send", queue, "CLIENT" if own else "PRODUCER", attributes, [own] if own else []) as span:
        yield Sent(span, properties)


@contextlib.contextmanager
def create(
    queue: str, properties: Mapping[str, Any] | None = None, *, correlation: str | None = None, provider: TracerProvider | None = None
) -> Iterator[Sent]:
    """A span "create", of one message of several that are sent together."""
    attributes = _attributes("create", queue, **{"messaging.message.conversation_id": correlation})
    with _span(provider, "create", queue, "PRODUCER", attributes) as span:
        yield Sent(span, properties)


class Batch:
    """Messages that are sent together."""

    def __init__(self, span: Span, messages: Sequence[Sent]) -> None:
        self.span, self.messages = span, messages

    @property
    def options(self) -> str:
        """The argument "options" of aq.enqueue_array, as JSON."""
        return json.dumps([{"properties": each.values} for each in self.messages])

    def ids(self, given: Iterable[Any]) -> None:
        """What aq.enqueue_array has returned."""
        for each, msgid in zip(self.messages, given):
            each._id = msgid


@contextlib.contextmanager
def send_batch(queue: str, messages: Iterable[Mapping[str, Any] | None], *, provider: TracerProvider | None = None) -> Iterator[Batch]:
    """A span "send" of several messages, given by their properties, and a span "create" for each."""
    created = []
    for properties in messages:
        with create(queue, properties, provider=provider) as one:
            created.append(one)
    links = _links({"properties": each.values} for each in created)
    attributes = _attributes("send", queue, **{"messaging.batch.message_count": len(created)})
    with _span(provider, "send", queue, "CLIENT", attributes, links) as span:
        yield Batch(span, created)


class Received:
    """What a span "receive" has received: set `messages` to the rows."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self._messages: list[Any] = []

    @property
    def messages(self) -> list[Any]:
        return self._messages

    @messages.setter
    def messages(self, rows: Iterable[Any]) -> None:
        self._messages = list(rows)
        self.span.set_attribute("messaging.batch.message_count", len(self._messages))
        for link in _links(self._messages):
            self.span.add_link(link.context, link.attributes)


@contextlib.contextmanager
def receive(queue: str | None, *, consumer: str | None = None, provider: TracerProvider | None = None) -> Iterator[Received]:
    """A span "receive", with a link to the creation of each message."""
    attributes = _attributes("receive", queue, **{"messaging.destination.subscription.name": consumer})
    with _span(provider, "receive", queue, "CLIENT", attributes) as span:
        yield Received(span)


@contextlib.contextmanager
def process(queue: str, message: Any, *, consumer: str | None = None, provider: TracerProvider | None = None) -> Iterator[Span]:
    """A span "process", with a link to the creation of the message.

    It belongs to the trace of the current span, or, without one, to the trace of the message.
    """
    if trace is None:
        raise Missing
    parent = None if trace.get_current_span().get_span_context().is_valid else context_of(message)
    attributes = _attributes("process", queue, **{"messaging.destination.subscription.name": consumer}, **_of_message(message))
    with _span(provider, "process", queue, "CONSUMER", attributes, _links([message]), parent) as span:
        yield span


@contextlib.contextmanager
def settle(
    queue: str, messages: Iterable[Any], how: str = "acknowledge", *, consumer: str | None = None, provider: TracerProvider | None = None
) -> Iterator[Span]:
    """A span "settle" of messages with leases; how: acknowledge, release or reject."""
    settled = list(messages)
    more = _of_message(settled[0]) if len(settled) == 1 else {"messaging.batch.message_count": len(settled)}
    attributes = _attributes(
        "settle", queue, **{"messaging.destination.subscription.name": consumer, "messaging.pgaq.settlement": how}, **more
    )
    links = _links(settled) if trace is not None else []
    with _span(provider, "settle", queue, "CLIENT", attributes, links) as span:
        yield span
