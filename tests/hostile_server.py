"""A small server on the loopback that speaks PostgreSQL's protocol, says that it is a node with pgaq, and answers what it was told to."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import uuid
from collections.abc import Callable

Answer = Callable[[int], bytes]  # of the number of columns that a good answer has

GREETING, AGREEMENT = "getdatabaseencoding", "link_hello"
PARAMETERS = {"server_version": "15.0", "client_encoding": "UTF8", "integer_datetimes": "on", "standard_conforming_strings": "on"}


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack(">I", len(body) + 4) + body


def description(columns: int, binary: bool = False) -> bytes:
    return message(
        b"T", struct.pack(">H", columns) + b"".join(b"c\0" + struct.pack(">IHIhih", 0, 0, 25, -1, -1, binary) for _ in range(columns))
    )


def row(*values: bytes | None) -> bytes:
    return message(
        b"D",
        struct.pack(">H", len(values)) + b"".join(struct.pack(">i", -1) if v is None else struct.pack(">i", len(v)) + v for v in values),
    )


def rows(*each: tuple[bytes | None, ...], columns: int | None = None, binary: bool = False) -> bytes:
    """A whole answer."""
    return (
        description(len(each[0]) if columns is None else columns, binary)
        + b"".join(row(*values) for values in each)
        + message(b"C", b"SELECT 1\0")
    )


def error(**fields: bytes) -> bytes:
    return message(b"E", b"".join(name.encode() + value + b"\0" for name, value in fields.items()) + b"\0")


class Part(bytes):
    """After it, the connection is closed."""


def of_all(value: bytes | None, binary: bool = False) -> Answer:
    return lambda n: rows((value,) * n, binary=binary)


# what no server with pgaq answers
EVIL: dict[str, Answer] = {
    "no columns": lambda n: description(0) + row() * 2 + message(b"C", b"SELECT 2\0"),
    "too few columns": lambda n: rows((b"1",) * (n - 1)),
    "too many columns": lambda n: rows((b"1",) * (n + 1)),
    "null": of_all(None),
    "no number": of_all(b"x"),
    "a number and more": of_all(b"1; DROP"),
    "out of range": of_all(b"99999999999999999999"),
    "negative": of_all(b"-9223372036854775808"),
    "wrong encoding": of_all(b"\xff\xfe\xc3"),
    "a zero byte": of_all(b"1\0x"),
    "large": of_all(b"1" * 1_000_000),
    "binary": of_all(b"\0\0\0\1", binary=True),
    "no rows": lambda n: rows(columns=n),
    "many rows": lambda n: rows(*[(b"1",) * n] * 20_000),
    "nothing": lambda n: message(b"C", b"SELECT 0\0"),
    "an empty query": lambda n: message(b"I"),
    "two answers": lambda n: rows((b"1",) * n) * 2,
    "a row and an error": lambda n: description(n) + row(*(b"1",) * n) + error(C=b"22000", M=b"no"),
    "a longer row than described": lambda n: rows((b"1",) * (n + 3), columns=n),
    "an odd error": lambda n: error(C=b"x'\xff%s", M=b"\xff%n%s\x1b[31m" * 100_000, D=b"\xc3", H=b"\r\n\t", S=b""),
    "an error of success": lambda n: error(C=b"00000", M=b""),
    "an empty error": lambda n: error(),
    "a copy": lambda n: message(b"G", b"\0\0\0"),
    "no message": lambda n: b"\xff" * 100,
    "a part": lambda n: Part(description(n) + message(b"D", b"\0" * 1000)[:20]),
    "noise": lambda n: (
        (message(b"A", b"\0\0\0\1n\0p\0") + message(b"N", b"\0") + message(b"S", b"client_encoding\0LATIN1\0")) * 1000
        + rows((b"\xe4",) * n)
    ),
}


class Hostile:
    """Its port is .port, its identity as a node .id.  answers: for words of a statement, what it answers one after the other; None: well; when they are used up, it answers well.  .left: how many are not used up."""

    def __init__(self, answers: dict[str, list[Answer | None]] | None = None):
        self.silent = False  # if it says nothing
        self.rounds = 0  # if not 0, it asks for a password, and has it proved with so many rounds
        self.id = str(uuid.uuid4())
        self.answers = answers or {}
        self.last: list[str] = []  # the latest statements
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def left(self) -> int:
        return sum(map(len, self.answers.values()))

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _well(self, sql: str) -> list[bytes | None]:
        """The row that a node answers."""
        for words, answer in (
            (GREETING, [b"UTF8", b"150000", b"f", b"0.1.0", b"postgres", b""]),
            (AGREEMENT, [b"1", b"7000000000000000001", b"1", b"5"]),
            ("node_beat", [self.id.encode(), b"1", b"1767225600000000", b"t"]),
            ("node_want", [b""]),
            ("node_deliver", [b"t"] * sql.count("node_deliver")),
            ("propagation_begin", [b"0", None]),
            ("propagation_put", [b"1"]),
        ):
            if words in sql:
                return answer
        return [b"t"]

    def _answer(self, sql: str) -> bytes:
        good = self._well(sql)
        self.last = [*self.last[-9:], sql[:60]]
        for words, evil in self.answers.items():
            if words in sql and evil:
                answer = evil.pop(0)
                if answer is not None:
                    return answer(len(good))
        return rows(columns=1) if "unnest" in sql else rows(tuple(good))

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError), connection, connection.makefile("rb") as stream:

            def take(size: int) -> bytes:
                data = stream.read(size)
                if len(data) < size:
                    raise EOFError
                return data

            while True:  # until it is not a question about encryption
                (length,) = struct.unpack(">I", take(4))
                if struct.unpack(">I", take(length - 4)[:4])[0] < 80_000_000:
                    break
                connection.sendall(b"N")
            if self.silent:
                take(1)
            if self.rounds:
                connection.sendall(message(b"R", struct.pack(">I", 10) + b"SCRAM-SHA-256\0\0"))
                take(1)
                first = take(struct.unpack(">I", take(4))[0] - 4)
                nonce = first[first.rindex(b"r=") + 2 :]
                connection.sendall(message(b"R", struct.pack(">I", 11) + b"r=%sx,s=c2FsdA==,i=%d" % (nonce, self.rounds)))
                take(1)
            settings = b"".join(message(b"S", f"{name}\0{value}\0".encode()) for name, value in PARAMETERS.items())
            connection.sendall(
                message(b"R", struct.pack(">I", 0)) + settings + message(b"K", struct.pack(">II", 1, 1)) + message(b"Z", b"I")
            )
            sql = ""
            while True:
                kind = take(1)
                body = take(struct.unpack(">I", take(4))[0] - 4)
                if kind == b"P":
                    sql = body.split(b"\0")[1].decode()
                elif kind == b"S":
                    answer = self._answer(sql)
                    connection.sendall(message(b"1") + message(b"2") + answer + (b"" if isinstance(answer, Part) else message(b"Z", b"I")))
                    if isinstance(answer, Part):
                        return
                elif kind == b"X":
                    return
