"""The programs of bench/ answer a user's mistake with one sentence, before they begin any work."""

import errno
import os

import pytest

from pgaq import db, places
from pgaq.bench import accounting, backlog, cluster, endure, leases, notify, program, propagate, throughput
from pgaq.places import SurroundingsError

PROGRAMS = pytest.mark.parametrize(
    "module",
    [throughput, endure, backlog, accounting, leases, notify, propagate, cluster],
    ids=lambda module: module.__name__.rpartition(".")[2],
)


@pytest.fixture
def refusal(monkeypatch, capsys):
    """A program's error message: the last line of its standard error."""

    def say(module, *arguments):
        monkeypatch.setattr(module, "run", lambda *_: pytest.fail("it runs"))
        try:
            status = module.main(list(arguments))
        except SystemExit as end:
            status = end.code
        said = capsys.readouterr().err.strip()
        assert status not in (0, None)
        return said.splitlines()[-1]

    return say


@pytest.fixture
def config(monkeypatch):
    """Sets PG_CONFIG, and lets it be looked at again."""

    def choose(name):
        monkeypatch.setenv("PG_CONFIG", name)
        forget()

    def forget():
        places.pg_config_program.cache_clear()
        places.pg_config.cache_clear()

    yield choose
    monkeypatch.undo()
    forget()


@PROGRAMS
def test_a_parent_that_is_no_directory(refusal, module, tmp_path):
    (tmp_path / "file").touch()
    for name in ("absent", "file"):
        assert f"--parent: there is no directory {tmp_path / name}; make it first" in refusal(
            module, "--no-save", "--parent", str(tmp_path / name)
        )


@PROGRAMS
def test_a_parent_that_the_server_cannot_enter(refusal, module, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o600)
    assert f"--parent: {closed} cannot be written by us or entered by" in refusal(module, "--no-save", "--parent", str(closed))


@PROGRAMS
def test_an_output_that_cannot_be_made(refusal, module, tmp_path):
    (tmp_path / "file").touch()
    assert "choose another, or --no-save" in refusal(module, "--output", str(tmp_path / "file" / "below"))


@PROGRAMS
def test_a_setting_without_a_value(refusal, module):
    assert "'fsync' is not of the form NAME=VALUE" in refusal(module, "--set", "fsync")


@PROGRAMS
@pytest.mark.parametrize("name", ["/nowhere/pg_config", "/bin/false", "/bin/echo"])
def test_a_pg_config_that_is_none(refusal, config, module, name):
    config(name)
    assert f"{name} " in refusal(module, "--no-save") and "PG_CONFIG must name" in refusal(module, "--no-save")


@pytest.mark.parametrize(
    "module, arguments, said",
    [
        (throughput, ["--rounds", "0"], "--rounds: must be at least 1"),
        (throughput, ["--seconds", "0"], "--seconds: must be above 0"),
        (throughput, ["--payload", "3"], "--payload: must be at least 39"),
        (throughput, ["--payload", "much"], "invalid int value: 'much'"),
        (throughput, ["--shapes", "nosuch"], "no shape has such a name; see bench/run --list"),
        (throughput, ["--contestants", "pgaq,nosuch"], "there is no contestant 'nosuch'; there are"),
        (endure, ["--hold", "nosuch"], "invalid choice: 'nosuch'"),
        (endure, ["--sessions", "0"], "--sessions: must be at least 1"),
        (endure, ["--minutes", "1", "--interval", "61"], "cannot be longer than the run"),
        (backlog, ["--messages", "0"], "--messages: must be at least 1000"),
        (accounting, ["--slices", "0"], "--slices: must be at least 2"),
        (notify, ["--queues", "1"], "--queues: must be at least 2"),
        (leases, ["--messages", "10"], "--messages: must be at least 10000"),
        (leases, ["--parts", "10,nosuch"], "there is no part 'nosuch'; there are 10, 1000, pgmq"),
        (propagate, ["--parts", "nosuch"], "there is no part 'nosuch'; there are rate, latency, source"),
        (cluster, ["--parts", "idle,nosuch"], "there is no part 'nosuch'; there are local, forward, latency, idle"),
    ],
)
def test_an_impossible_option(refusal, module, arguments, said):
    assert said in refusal(module, *arguments)


@pytest.mark.parametrize(
    "error, said",
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full"), "x: /full: No space left on device"),
        (db.OperationalError("could not extend file:\n  no room"), "x: the server says: could not extend file: no room"),
        (SurroundingsError("Up to 4 GB of disk are needed."), "x: Up to 4 GB of disk are needed."),
    ],
    ids=["disk", "server", "surroundings"],
)
def test_an_error_on_the_way(capsys, error, said):
    def run():
        raise error

    given = throughput.parse(["--no-save"])
    assert program.carry_out("x", given, run) == 1
    assert capsys.readouterr().err.strip() == said
