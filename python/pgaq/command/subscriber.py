"""pgaq subscriber: list, add, alter, remove, grant, revoke."""

from __future__ import annotations

from typing import Optional

import typer

from pgaq import db
from pgaq.command import common, output
from pgaq.command.common import QUEUE, asking, command, group, messages_of, names_of_consumers, names_of_queues
from pgaq.subjects import SUBSCRIBERS

app = group("Subscribers of topics.")
NAME = typer.Argument(..., metavar="NAME", help="Name of the subscriber.", autocompletion=names_of_consumers, show_default=False)
RULE = typer.Option(None, "--rule", metavar="SQL", help='Condition that its messages meet, such as "priority = 0".', show_default=False)


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="subscriber")


@command(app, "list")
def list_subscribers(
    queue: Optional[str] = typer.Argument(
        None, metavar="[QUEUE]", help="Only of this topic.", autocompletion=names_of_queues, show_default=False
    ),
) -> None:
    """Subscribers with their rules and backlogs."""
    with asking() as conn:
        if queue is not None:
            common.queue_type(conn, queue)
        rows = output.ask(conn, SUBSCRIBERS, queue=queue)
    output.show(SUBSCRIBERS, rows)


@command(app, "add")
def add(
    queue: str = QUEUE,
    name: str = NAME,
    rule: Optional[str] = RULE,
    comment: Optional[str] = typer.Option(None, "--comment", help="A comment.", show_default=False),
    delivery_mode: str = messages_of("persistent", "Those that it gets"),
    if_not_exists: bool = typer.Option(False, "--if-not-exists", help="Do nothing if it exists."),
) -> None:
    """Add a subscriber: it gets the messages that are enqueued from now on."""
    with asking() as conn:
        db.execute(
            conn,
            "SELECT aq.subscribe(%s, %s, rule => %s, comment => %s, delivery_mode => %s, if_not_exists => %s)",
            [queue, name, rule, comment, delivery_mode, if_not_exists],
        )
    output.say(f"Subscribed {name} to {queue}.", queue=queue, consumer=name, subscribed=True)


@command(app, "alter")
def alter(queue: str = QUEUE, name: str = NAME, rule: Optional[str] = RULE) -> None:
    """Replace the rule of a subscriber; without --rule it gets every message."""
    with asking() as conn:
        db.execute(conn, "SELECT aq.alter_subscriber(%s, %s, %s)", [queue, name, rule])
    output.say(
        f"Subscriber {name} of {queue} now gets {'messages with ' + rule if rule else 'every message'}.",
        queue=queue,
        consumer=name,
        rule=rule,
    )


@command(app, "remove")
def remove(queue: str = QUEUE, name: str = NAME, yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask.")) -> None:
    """Remove a subscriber and its messages."""
    with asking() as conn:
        common.queue_type(conn, queue)
        lag = db.value(conn, "SELECT sum(lag) FROM aq.metrics() WHERE queue_name = %s AND consumer = %s", [queue, name])
        if lag:
            common.confirm(f'Remove subscriber "{name}" of "{queue}" with its {lag} messages?', yes)
        db.execute(conn, "SELECT aq.unsubscribe(%s, %s)", [queue, name])
    output.say(f"Removed {name} from {queue}.", queue=queue, consumer=name, removed=True)


ROLE = typer.Argument(
    ..., metavar="ROLE", help="The role, or public; as in SQL, a name with capital letters needs double quotes.", show_default=False
)


@command(app, "grant")
def grant(queue: str = QUEUE, name: str = NAME, role: str = ROLE) -> None:
    """Grant a role the privilege to receive the messages of this subscriber only."""
    with asking() as conn:
        db.execute(conn, "SELECT aq.grant_consumer(%s, %s, %s)", [queue, name, role])
    output.say(f"Granted {name} of {queue} to {role}.", queue=queue, consumer=name, role=role, granted=True)


@command(app, "revoke")
def revoke(queue: str = QUEUE, name: str = NAME, role: str = ROLE) -> None:
    """Revoke the privilege of a role to receive the messages of this subscriber."""
    with asking() as conn:
        db.execute(conn, "SELECT aq.revoke_consumer(%s, %s, %s)", [queue, name, role])
    output.say(f"Revoked {name} of {queue} from {role}.", queue=queue, consumer=name, role=role, revoked=True)
