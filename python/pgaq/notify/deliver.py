"""One delivery: an HTTP request, or a mail.

Refused raises when the address is not allowed: to try again would not help.
Any other error is worth another attempt.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.client
import ipaddress
import re
import smtplib
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Iterator
from urllib.parse import SplitResult, urlsplit

from pgaq.notify.settings import Host, Mail, Settings

NAT64 = ipaddress.ip_network("64:ff9b::/96")
ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


class Refused(Exception):
    """The administrator does not allow this, or it can never work."""


class Failed(Exception):
    """It did not work this time."""


@dataclass(frozen=True)
class Delivery:
    """What is to be delivered; the id is the same in all attempts."""

    id: str
    to: str
    body: bytes
    content_type: str = "application/json"
    subject: str = ""


def deliver(settings: Settings, delivery: Delivery, until: float) -> None:
    """Delivers within the time limit, if it can begin before this time; raises Refused or Failed."""
    try:
        if delivery.to.lower().startswith("mailto:"):
            _send_mail(settings, delivery)
        elif delivery.to.lower().startswith(("https://", "http://")):
            _post(settings, delivery, until)
        else:
            raise Refused("the address does not begin with https://, http:// or mailto:")
    except (OSError, http.client.HTTPException, smtplib.SMTPException) as error:
        raise Failed(f"{type(error).__name__}: {error}") from error


def signature(key: bytes, id: str, timestamp: int, body: bytes) -> str:
    """Of the Standard Webhooks: HMAC with SHA-256 over id, time and body."""
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


# -- HTTP


def _post(settings: Settings, delivery: Delivery, until: float) -> None:
    url, name, port = _parse(delivery.to)
    host = next((each for each in settings.hosts if each.covers(name, port)), None)
    if host is None:
        raise Refused(f"host {name}, port {port} is not in the list of allowed hosts")
    if url.scheme == "http" and not host.plain:
        raise Refused(f"http:// is not allowed for host {name}")
    addresses = _resolve(host, name, port)
    if time.monotonic() > until:
        raise Failed(f"the resolution of host {name} took too long")
    timestamp = int(time.time())
    headers = {
        "Content-Type": delivery.content_type, "User-Agent": "pgaq", "Idempotency-Key": delivery.id, "webhook-id": delivery.id, "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(host.key, delivery.id, timestamp, delivery.body), "Connection": "close",
    }  # fmt: skip
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection = _Connection(url, name, port, addresses, settings)
    with _limit(connection, settings.timeout):
        connection.request("POST", path, delivery.body, headers)
        status = connection.getresponse().status
    if not 200 <= status < 300:  # redirects are not followed
        raise Failed(f"HTTP status {status}")


def _parse(text: str) -> tuple[SplitResult, str, int]:
    if not text.isascii() or re.search(r"[\x00-\x20\x7f\\]", text):
        raise Refused("the address has characters that must be encoded")
    try:
        url = urlsplit(text)
        port = url.port or (443 if url.scheme == "https" else 80)
    except ValueError as error:
        raise Refused(f"the address is not valid: {error}") from None
    name = (url.hostname or "").rstrip(".")
    if not name or url.username is not None or url.password is not None:
        raise Refused("the address has no host, or has a user name")
    return url, name, port


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return _is_public(str(inner))
    return ip.is_global and not ip.is_multicast


def _resolve(host: Host, name: str, port: int) -> list[str]:
    """The addresses of the name; the connection is made to one of these, whatever the name means by then."""
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # a label of more than 63 characters, or an empty one
        raise Refused("the host name is not valid") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    hidden = [address for address in addresses if not _is_public(address)]
    if hidden and not host.private:
        raise Refused(f"host {name} has the address {hidden[0]}, which is not public")
    return addresses


class _Connection(http.client.HTTPConnection):
    """A connection to an address that was checked; TLS with the certificate of the name."""

    def __init__(self, url: SplitResult, name: str, port: int, addresses: list[str], settings: Settings) -> None:
        super().__init__(name, port, timeout=settings.timeout)
        self.default_port = 443 if url.scheme == "https" else 80
        self.addresses = addresses
        self.context = ssl.create_default_context(cafile=settings.ca_file) if url.scheme == "https" else None
        self.over = False

    def connect(self) -> None:
        error: OSError | None = None
        for address in self.addresses:
            if self.over:
                break
            try:
                self.sock = socket.create_connection((address, self.port), self.timeout)
                break
            except OSError as failed:
                error = failed
        else:
            raise error or OSError("no address")
        if self.sock is None:
            raise TimeoutError("timed out")
        if self.context is not None:
            self.sock = self.context.wrap_socket(self.sock, server_hostname=self.host)


@contextlib.contextmanager
def _limit(connection: _Connection, seconds: float) -> Iterator[None]:
    """Ends the connection after the time, also while the other side sends a byte now and then."""

    def end() -> None:
        connection.over = True
        if connection.sock is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if not connection.over:
            raise
    finally:
        timer.cancel()
        connection.close()
    if connection.over:  # what has arrived until then may look complete
        raise Failed(f"no answer within {seconds:g} s")


# -- mail


def _send_mail(settings: Settings, delivery: Delivery) -> None:
    address = delivery.to[len("mailto:") :]
    mail = settings.mail
    if mail is None:
        raise Refused("no mail server is configured")
    if not ADDRESS.fullmatch(address):
        raise Refused("the mail address is not valid")
    if not mail.covers(address):
        raise Refused(f"{address} is not in the list of allowed recipients")
    message = _message(mail, address, delivery)
    make = smtplib.SMTP_SSL if mail.security == "tls" else smtplib.SMTP
    context = ssl.create_default_context(cafile=settings.ca_file)
    more = {"context": context} if mail.security == "tls" else {}
    with make(mail.server, mail.port, timeout=settings.timeout, **more) as smtp:  # type: ignore[arg-type]
        if mail.security == "starttls":
            smtp.starttls(context=context)
        if mail.user:
            smtp.login(mail.user, mail.password)
        smtp.send_message(message)


def _message(mail: Mail, address: str, delivery: Delivery) -> EmailMessage:
    message = EmailMessage()
    try:
        message["From"], message["To"], message["Subject"] = mail.sender, address, delivery.subject or "Notification"
        # the same in all attempts, so that a repetition can be recognized
        message["Message-ID"] = f"<{delivery.id}@pgaq>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(delivery.body.decode())
    except ValueError as error:
        raise Refused(f"the mail is not valid: {error}") from None
    return message
