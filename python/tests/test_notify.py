"""What pgaq notify may deliver to, and what a delivery looks like; the receivers are in this process."""

from __future__ import annotations

import base64
import contextlib
import http.server
import os
import socket
import ssl
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator

import pytest

from pgaq.notify import deliver, settings
from pgaq.notify.deliver import Delivery, Failed, Refused
from pgaq.notify.settings import Host, Mail, Settings
from pgaq_proof.sink import Sink, mail_sink

KEY = b"k" * 32
WORD = settings.PREFIX + base64.b64encode(KEY).decode()
BEGIN = float("inf")


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what it gets; the path says what it answers."""

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))  # type: ignore[attr-defined]
        status = int(self.path.strip("/").split("/")[0] or 200)
        if status == 999:  # never ends
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            with contextlib.suppress(OSError):
                while not self.server.over.wait(0.05):  # type: ignore[attr-defined]
                    self.wfile.write(b"X-More: 1\r\n")
            return
        self.send_response(status)
        self.send_header("Location", "/200")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[http.server.ThreadingHTTPServer]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as made:
        made.got, made.over = [], threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.over.set()  # type: ignore[attr-defined]
        made.shutdown()
        thread.join()


def allow(port: int, **more: Any) -> Settings:
    return Settings(timeout=20, hosts=(replace(Host("127.0.0.1", KEY, (port,), plain=True, private=True), **more),))


def test_a_request(receiver):
    """The body arrives once, signed, with the id as its idempotency key."""
    port = receiver.server_port
    deliver.deliver(allow(port), Delivery("id-1", f"http://127.0.0.1:{port}/200/hook?a=b", b'{"n": 1}'), BEGIN)
    [(path, headers, body)] = receiver.got
    assert (path, body, headers["Content-Type"]) == ("/200/hook?a=b", b'{"n": 1}', "application/json")
    assert headers["Idempotency-Key"] == headers["webhook-id"] == "id-1" and abs(int(headers["webhook-timestamp"]) - time.time()) < 600
    assert headers["webhook-signature"] == deliver.signature(KEY, "id-1", int(headers["webhook-timestamp"]), body)


def test_the_signature_is_that_of_the_standard():
    """The example of the Standard Webhooks, so that their libraries verify it."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert (
        deliver.signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 500, 503])
def test_another_status_is_a_failure(receiver, status):
    """Also a redirect, which is not followed."""
    port = receiver.server_port
    with pytest.raises(Failed, match=f"HTTP status {status}"):
        deliver.deliver(allow(port), Delivery("id", f"http://127.0.0.1:{port}/{status}", b""), BEGIN)
    assert len(receiver.got) == 1


def test_an_answer_that_does_not_end(receiver):
    """The time limit is for the whole request."""
    port = receiver.server_port
    with pytest.raises(Failed, match="no answer within 1 s"):
        deliver.deliver(replace(allow(port), timeout=1), Delivery("id", f"http://127.0.0.1:{port}/999", b""), BEGIN)


@pytest.mark.parametrize(
    "to, more, why",
    [
        ("http://127.0.0.1:{port}/", {"private": False}, "not public"),
        ("http://127.0.0.1:{port}/", {"plain": False}, "http:// is not allowed"),
        ("http://127.0.0.1:1/", {}, "not in the list"),
        ("http://localhost:{port}/", {}, "not in the list"),
        ("http://127.0.0.1.evil.example:{port}/", {}, "not in the list"),
        ("http://127.0.0.1:{port}@evil.example/", {}, "user name"),
        ("http://user@127.0.0.1:{port}/", {}, "user name"),
        ("http://127.0.0.1:{port}/a b", {}, "must be encoded"),
        ("http://127.0.0.1:{port}/\r\nX: 1", {}, "must be encoded"),
        ("http://127.0.0.1:99999/", {}, "not valid"),
        ("http:///x", {}, "no host"),
        ("file:///etc/passwd", {}, "does not begin"),
        ("mailto:ann@example.org", {}, "no mail server"),
    ],
)  # fmt: skip
def test_refused(receiver, to, more, why):
    """Nothing is sent to an address that is not allowed."""
    port = receiver.server_port
    with pytest.raises(Refused, match=why):
        deliver.deliver(allow(port, **more), Delivery("id", to.format(port=port), b""), BEGIN)
    assert receiver.got == []


def test_a_name_with_a_private_address(receiver, monkeypatch):
    """An allowed name that resolves to a private address, among others, is refused."""
    hosts = (Host("hooks.example.org", KEY, (receiver.server_port,), plain=True),)
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in ("93.184.216.34", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(Refused, match="127.0.0.1, which is not public"):
        deliver.deliver(Settings(hosts=hosts), Delivery("id", f"http://hooks.example.org:{receiver.server_port}/", b""), BEGIN)
    assert receiver.got == []


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fc00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ],
)
def test_addresses_that_are_not_public(address):
    assert not deliver._is_public(address)


def test_public_addresses():
    assert deliver._is_public("93.184.216.34") and deliver._is_public("2606:2800:220:1::1")


@pytest.mark.parametrize("name", ["a" * 64 + ".example.net", "a..example.net"])
def test_a_host_name_that_cannot_be_one(name):
    """It is refused; an error of another kind would end the service, and the message would be delivered again."""
    with pytest.raises(Refused, match="host name is not valid"):
        deliver.deliver(Settings(hosts=(Host(".example.net", KEY),)), Delivery("id", f"https://{name}/", b""), BEGIN)


def test_a_suffix_covers_hosts_below_it():
    host = Host(".example.org", KEY)
    assert host.covers("a.example.org", 443) and host.covers("a.b.example.org", 443)
    assert not host.covers("example.org", 443) and not host.covers("evilexample.org", 443) and not host.covers("a.example.org", 80)


def test_a_server_that_does_not_speak_tls(receiver):
    """It gets no request."""
    port = receiver.server_port
    with pytest.raises(Failed, match="SSL"):
        deliver.deliver(allow(port), Delivery("id", f"https://127.0.0.1:{port}/", b""), BEGIN)
    assert receiver.got == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """The certificate of localhost, which it has signed itself, and its key."""
    files = tmp_path_factory.mktemp("tls") / "certificate.pem", tmp_path_factory.mktemp("tls") / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
    ]
    subprocess.run([*command, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


@pytest.fixture
def context(certificate) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(*certificate)
    return made


def test_tls(receiver, certificate, context):
    """A request goes to a server whose certificate ca_file has signed, for the name that the address has; to no other one."""
    receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
    port = receiver.server_port
    trusting = replace(allow(port, host="localhost", plain=False), ca_file=str(certificate[0]))
    deliver.deliver(trusting, Delivery("id", f"https://localhost:{port}/", b""), BEGIN)
    for settings_, host in (
        (replace(trusting, ca_file=None), "localhost"),
        (replace(trusting, hosts=allow(port, plain=False).hosts), "127.0.0.1"),
    ):
        with pytest.raises(Failed, match="certificate verify failed"):
            deliver.deliver(settings_, Delivery("other", f"https://{host}:{port}/", b""), BEGIN)
    assert len(receiver.got) == 1


def test_too_late(receiver):
    """An attempt does not begin when its lease could end before it."""
    port = receiver.server_port
    with pytest.raises(Failed, match="took too long"):
        deliver.deliver(allow(port), Delivery("id", f"http://127.0.0.1:{port}/", b""), 0)
    assert receiver.got == []


# -- mail


@pytest.fixture
def sink() -> Iterator[Sink]:
    with mail_sink() as made:
        yield made


def mail(port: int) -> Settings:
    return Settings(
        timeout=20, mail=Mail("127.0.0.1", "pgaq@example.org", ("ann@example.org", "nobody@example.org", "@example.net"), port, "none")
    )


def test_a_mail(sink):
    """Recipient, subject, text and the id arrive."""
    deliver.deliver(mail(sink.port), Delivery("id-1", "mailto:ann@example.org", "grüße".encode(), subject="Order 1"), BEGIN)
    [text] = sink.got
    for line in ("From: pgaq@example.org", "To: ann@example.org", "Subject: Order 1", "Message-ID: <id-1@pgaq>"):
        assert line in text


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_mail_over_tls(certificate, context, security):
    """A mail goes only to a server whose certificate is trusted, and only over TLS."""
    with mail_sink(context, at_once=security == "tls") as sink:
        to = Mail("localhost", "pgaq@example.org", ("ann@example.org",), sink.port, security)
        delivery = Delivery("id-1", "mailto:ann@example.org", b"text")
        deliver.deliver(Settings(timeout=20, mail=to, ca_file=str(certificate[0])), delivery, BEGIN)
        with pytest.raises(Failed, match="certificate verify failed"):
            deliver.deliver(Settings(timeout=20, mail=to), delivery, BEGIN)
        assert sink.secure == [True]


def test_a_mail_server_without_starttls(sink):
    """It gets no mail if TLS is required."""
    to = replace(mail(sink.port).mail, security="starttls")
    with pytest.raises(Failed, match="STARTTLS"):
        deliver.deliver(Settings(timeout=20, mail=to), Delivery("id", "mailto:ann@example.org", b""), BEGIN)
    assert sink.got == []


def test_a_recipient_that_the_server_refuses(sink):
    with pytest.raises(Failed, match="550"):
        deliver.deliver(mail(sink.port), Delivery("id", "mailto:nobody@example.org", b""), BEGIN)


@pytest.mark.parametrize(
    "to, subject",
    [
        ("eve@example.com", ""),
        ("ann@example.org,eve@example.com", ""),
        ("ann@example.org?cc=eve@example.com", ""),
        ("a@evil.example.net", ""),
        ("bob@example.net", "a\r\nBcc: eve@example.com"),
    ],
)
def test_mail_that_is_refused(sink, to, subject):
    """Other recipients, lists and options of recipients, and headers in the subject."""
    with pytest.raises(Refused):
        deliver.deliver(mail(sink.port), Delivery("id", "mailto:" + to, b"", subject=subject), BEGIN)
    assert sink.got == []


# -- the file


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    os.chmod(path, mode)
    return path


def test_a_file(tmp_path):
    """Every setting, and the defaults."""
    text = f"""parallel = 2
timeout = 3
[[http]]
host = "Hooks.example.org"
key = "{WORD}"
[[http]]
host = ".example.net"
key = "{WORD}"
ports = [8443]
private = true
[mail]
server = "mail.example.org"
sender = "pgaq@example.org"
recipients = ["@example.org"]
"""
    found = settings.read(write(tmp_path / "notify.toml", text))
    assert (found.parallel, found.timeout, found.hosts) == (
        2,
        3,
        (Host("hooks.example.org", KEY), Host(".example.net", KEY, (8443,), private=True)),
    )
    assert found.mail == Mail("mail.example.org", "pgaq@example.org", ("@example.org",))


@pytest.mark.parametrize(
    "text, mode, why",
    [
        ("", 0o644, "read by others"), ("", 0o620, "written by its group"), ("x", 0o600, "not TOML"), ("paralel = 2", 0o600, "unknown setting"),
        ("parallel = 0", 0o600, "1 to 256"), ("timeout = true", 0o600, "wrong type"), ("[[http]]\nhost = 'a'", 0o600, "key is missing"),
        ("[[http]]\nhost = 'a'\nkey = 'whsec_YQ=='", 0o600, "at least 24"), ("[mail]\nserver = 'a'", 0o600, "sender is missing"),
        ("[mail]\nserver = 'a'\nsender = 'b'\nrecipients = ['c@d']\nsecurity = 'none'\nuser = 'x'", 0o600, "without TLS"),
    ],
)  # fmt: skip
def test_a_file_that_is_refused(tmp_path, text, mode, why):
    with pytest.raises(settings.Mistake, match=why):
        settings.read(write(tmp_path / "notify.toml", text, mode))
