"""The administrator's file: which addresses are allowed, with which key, and the mail server."""

from __future__ import annotations

import base64
import binascii
import stat
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PREFIX = "whsec_"
SHORTEST = 24  # bytes of a key


class Mistake(Exception):
    """The file cannot be used."""


@dataclass(frozen=True)
class Host:
    """An entry [[http]]: a host, or with a leading dot all hosts below it."""

    host: str
    key: bytes
    ports: tuple[int, ...] = (443,)
    plain: bool = False  # also http://
    private: bool = False  # also addresses that are not public

    def covers(self, name: str, port: int) -> bool:
        return port in self.ports and (name == self.host or (self.host.startswith(".") and name.endswith(self.host) and name != self.host))


@dataclass(frozen=True)
class Mail:
    """The table [mail]."""

    server: str
    sender: str
    recipients: tuple[str, ...]
    port: int = 587
    security: str = "starttls"  # or tls, none
    user: str = ""
    password: str = ""

    def covers(self, address: str) -> bool:
        domain = address[address.rindex("@") :].lower()
        return any(domain == each.lower() if each.startswith("@") else address == each for each in self.recipients)


@dataclass(frozen=True)
class Settings:
    parallel: int = 8
    timeout: float = 10.0
    hosts: tuple[Host, ...] = ()
    mail: Mail | None = None
    ca_file: str | None = field(default=None)


def read(path: Path) -> Settings:
    """Reads and checks the file, which holds keys: only its owner and group may read it."""
    try:
        if path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP):
            raise Mistake(f"{path} can be read by others, or written by its group: chmod 640, or 600")
        given = tomllib.loads(path.read_text())
    except OSError as error:
        raise Mistake(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Mistake(f"{path} is not TOML: {error}") from None
    try:
        return _settings(given)
    except Mistake as error:
        raise Mistake(f"{path}: {error}") from None


def _settings(given: dict[str, Any]) -> Settings:
    hosts = given.pop("http", [])
    mail = given.pop("mail", None)
    _check("the top of the file", given, {"parallel": int, "timeout": (int, float), "ca_file": str})
    if not 1 <= given.get("parallel", 8) <= 256:
        raise Mistake("parallel must be 1 to 256")
    if not 0 < given.get("timeout", 10) <= 300:
        raise Mistake("timeout must be more than 0, and 300 s at most")
    if not isinstance(hosts, list) or not all(isinstance(each, dict) for each in hosts):
        raise Mistake("hosts are tables named [[http]]")
    return Settings(**given, hosts=tuple(_host(each) for each in hosts), mail=_mail(mail) if mail is not None else None)


def _check(where: str, given: dict[str, Any], types: dict[str, Any], required: tuple[str, ...] = ()) -> None:
    for name, value in given.items():
        if name not in types:
            raise Mistake(f'{where}: unknown setting "{name}"')
        if not isinstance(value, types[name]) or (isinstance(value, bool) and types[name] is not bool):
            raise Mistake(f"{where}: {name} has the wrong type")
    for name in required:
        if not given.get(name):
            raise Mistake(f"{where}: {name} is missing")


def _host(given: dict[str, Any]) -> Host:
    where = f"[[http]] {given.get('host', '')}".rstrip()
    _check(where, given, {"host": str, "key": str, "ports": list, "plain": bool, "private": bool}, ("host", "key"))
    plain = given.get("plain", False)
    ports = given.get("ports", [443, 80] if plain else [443])
    if not all(isinstance(port, int) and 0 < port < 65536 for port in ports):
        raise Mistake(f"{where}: ports are numbers from 1 to 65535")
    return Host(given["host"].lower(), _key(where, given["key"]), tuple(ports), plain, given.get("private", False))


def _key(where: str, word: str) -> bytes:
    try:
        key = base64.b64decode(word.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not word.startswith(PREFIX) or len(key) < SHORTEST:
        raise Mistake(f"{where}: key must be {PREFIX} and at least {SHORTEST} random bytes in base64")
    return key


def _mail(given: Any) -> Mail:
    if not isinstance(given, dict):
        raise Mistake("mail is a table")
    types = {"server": str, "sender": str, "recipients": list, "port": int, "security": str, "user": str, "password": str}
    _check("[mail]", given, types, ("server", "sender", "recipients"))
    if given.get("security", "starttls") not in ("starttls", "tls", "none"):
        raise Mistake("[mail]: security is starttls, tls or none")
    if given.get("user") and given.get("security") == "none":
        raise Mistake("[mail]: a password is not sent without TLS")
    if not all(isinstance(each, str) and "@" in each for each in given["recipients"]):
        raise Mistake("[mail]: recipients are addresses, or @ and a domain")
    return Mail(**{**given, "recipients": tuple(given["recipients"])})
