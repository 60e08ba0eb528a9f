"""bench/profile without perf: what it makes of the stacks that perf prints."""

import pytest

from pgaq.bench import profile

PRINTED = """\
  101
\tffffffff81e32fbe finish_task_switch.isra.0+0x3e ([kernel.kallsyms])
\t          10ab59 __futex_abstimed_wait_common+0x19 (/usr/lib/libc.so.6)
\t          34d5e5 XLogFlush+0x75 (/usr/bin/postgres)
\t          47cc75 CommitTransactionCommand+0x235 (/usr/bin/postgres)

  102
\t          353d2b [unknown] (/usr/bin/postgres)
\t           1d2b0 aq_put+0x75 (/usr/lib/pgaq.so)
\t           1a2b0 executor_run+0x75 (/usr/lib/pgaq.so)

  103
\t          353d2b heap_form_tuple (/usr/bin/postgres)
"""
OURS, ROWS, OTHERS = ("aq_put", "pgaq.so"), ("heap_multi_insert", "postgres"), ("palloc", "postgres")
HOOK = ("executor_run", "pgaq.so")


def test_stacks_are_read_sample_by_sample():
    found = list(profile.samples(iter((PRINTED + "\n").splitlines(keepends=True))))
    assert [(sample.pid, len(sample.frames)) for sample in found] == [(101, 4), (102, 3), (103, 1)]
    assert found[1].frames == [("[unknown]", "postgres"), OURS, HOOK]
    assert found[2].frames == [("heap_form_tuple", "postgres")]


def test_the_last_sample_counts_without_an_empty_line():
    assert len(list(profile.samples(iter(PRINTED.splitlines(keepends=True))))) == 3


@pytest.mark.parametrize(
    ("frames", "about"),
    [
        ([OTHERS, OURS, HOOK], (profile.OURS, "aq_put")),
        ([OTHERS, ROWS, OURS, HOOK], (profile.ROWS, None)),
        ([OTHERS, HOOK], (profile.EXECUTOR, None)),
        ([OURS, ("CommitTransactionCommand", "postgres")], (profile.OURS, "aq_put")),
        ([OTHERS, ("XLogFlush", "postgres"), ("CommitTransactionCommand", "postgres")], (profile.FLUSH, None)),
        ([], (profile.EXECUTOR, None)),
    ],
)  # fmt: skip
def test_the_innermost_telling_function_decides(frames, about):
    assert profile.belongs_to(profile.Sample(1, frames), {1: "client backend"}) == about


@pytest.mark.parametrize(("kind", "about"), [("pgaq worker", profile.WORKERS), ("checkpointer", profile.BACKGROUND)])
def test_background_processes_are_told_by_their_kind(kind, about):
    assert profile.belongs_to(profile.Sample(1, [ROWS]), {1: kind}) == (about, None)
