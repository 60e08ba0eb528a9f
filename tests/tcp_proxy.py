"""A TCP proxy on the loopback that can delay, stall and cut what it forwards."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque


class Proxy:
    """Forwards connections to 127.0.0.1:port.  Its own port is .port; .stall() and .flow() stop and resume all bytes, .cut() ends all connections, .delay() slows them down."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._wakeup, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._stalled = self._ended = self._cutting = False
        self._delay = 0.0
        self._late: deque[tuple[float, socket.socket, bytes]] = deque()
        self.accepted = 0  # connections so far
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stall(self) -> None:
        """Forward nothing any more; new connections are accepted, and get nothing."""
        self._tell(_stalled=True)

    def flow(self) -> None:
        self._tell(_stalled=False)

    def cut(self) -> None:
        """End all connections; new ones are accepted."""
        self._tell(_cutting=True)

    def delay(self, seconds: float) -> None:
        """What comes from now on is forwarded so much later, in either direction."""
        self._tell(_delay=seconds)

    def close(self) -> None:
        self._tell(_ended=True)
        self._thread.join(10)

    def _tell(self, **changes: float) -> None:
        with self._lock:
            for name, value in changes.items():
                setattr(self, name, value)
        self._wakeup.send(b"x")

    def _run(self) -> None:
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        while not self._ended:
            timeout = max(self._late[0][0] - time.monotonic(), 0) if self._late else None
            for key, _ in self._selector.select(timeout):
                if key.fileobj is self._woken:
                    self._woken.recv(100)
                    self._obey()
                elif key.fileobj is self._listener:
                    self._accept()
                elif not self._stalled:
                    self._forward(key.fileobj)
            while self._late and self._late[0][0] <= time.monotonic():
                self._send(*self._late.popleft()[1:])
        for each in [*self._pairs, self._listener]:
            each.close()

    def _obey(self) -> None:
        """Watch the connections' sockets unless they are stalled; end them when asked to."""
        if self._cutting:
            self._cutting = False
            for each in list(self._pairs):
                self._end(each)
        for each in self._pairs:
            with contextlib.suppress(KeyError):
                self._selector.unregister(each)
            if not self._stalled:
                self._selector.register(each, selectors.EVENT_READ)

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        self.accepted += 1
        try:
            far = socket.create_connection(self._target, 10)
        except OSError:
            near.close()
            return
        self._pairs[near], self._pairs[far] = far, near
        if not self._stalled:
            self._selector.register(near, selectors.EVENT_READ)
            self._selector.register(far, selectors.EVENT_READ)

    def _forward(self, source: socket.socket) -> None:
        if source not in self._pairs:
            return
        try:
            data = source.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._end(source)
        elif self._delay > 0 or self._late:
            self._late.append((time.monotonic() + self._delay, source, data))
        else:
            self._send(source, data)

    def _send(self, source: socket.socket, data: bytes) -> None:
        """To the other end, unless the connection was ended meanwhile."""
        try:
            if source in self._pairs:
                self._pairs[source].sendall(data)
        except OSError:
            self._end(source)

    def _end(self, one: socket.socket) -> None:
        other = self._pairs.pop(one, None)
        for each in (one, other):
            if each is not None:
                self._pairs.pop(each, None)
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(each)
                each.close()
