"""The writer process: JSON lines in, MLflow runs out, JSON lines about them back.

MLflow's client spends about 20 ms of processor time on a run, all of it under the
interpreter's lock: a thread would take that from the search, a process uses another core.
Started by :mod:`comis_eval.tracking.writer`, in a session of its own, which no Ctrl-C
reaches. When the lines stop, be it that its parent was killed, it finishes what it was given.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from comis_eval.tracking.place import Place
from comis_eval.tracking.recorder import Recorder
from comis_eval.tracking.records import Parent, parent_of, run_of

_REPORT_SECONDS = 0.5


def main() -> None:
    """Read ``open``, any number of ``run`` and one ``finish`` from standard input."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # MLflow prints; what it prints is no reply
    given = _messages(sys.stdin.buffer)
    opening = next(given)["open"]
    place, parent = _place_of(opening), parent_of(opening["parent"])
    final: Parent | None = None
    recorder = Recorder(place, parent, backoff=opening["backoff"])
    with recorder:
        # what MLflow's import left behind stays; it need not be searched for garbage each time
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        last = 0.0
        for message in given:
            if "finish" in message:
                final = parent_of(message["finish"])
                break
            recorder.add(run_of(message["run"]))
            if time.monotonic() - last >= _REPORT_SECONDS:
                last = time.monotonic()
                _reply(replies, {"outcome": recorder.outcome})
        outcome = recorder.close(final)
    _reply(replies, {"outcome": outcome, "done": True})


def _messages(lines: IO[bytes]) -> Iterator[Any]:
    for line in lines:
        if not line.endswith(b"\n"):
            return  # the parent was killed within a line
        yield json.loads(line)


def _place_of(opening: dict[str, Any]) -> Place:
    root, database = opening["artifact_root"], opening["database"]
    return Place(opening["uri"], root and Path(root), database and Path(database))


def _reply(replies: IO[str], message: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody is left to be told
        print(json.dumps(message), file=replies, flush=True)
