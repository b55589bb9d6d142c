"""The writer process as its parent sees it: it is told, it is never waited for until the end."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from comis_eval.text import printable
from comis_eval.tracking.place import Place
from comis_eval.tracking.recorder import Outcome
from comis_eval.tracking.records import Parent, Run, as_json

_START = (
    "import sys; sys.path[:] = sys.argv[1:]; from comis_eval.tracking.process import main; main()"
)
_CHUNK = 1 << 16
_LAST_WORDS = 2000
_DROPPED = ("MLFLOW_TRACKING_URI", "MLFLOW_ENABLE_WORKSPACES", "_MLFLOW_TESTING_TELEMETRY")
ENVIRONMENT = {
    # read at import and again at every call; MLflow knows DO_NOT_TRACK only as "true"
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # what is too long goes into an artifact; if we ever miss one, hear of it
    "MLFLOW_TRUNCATE_LONG_VALUES": "false",
}
_MILDER = {
    # its own 7 retries take four minutes a call, and ours come on top
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}


def environment() -> dict[str, str]:
    """The writer's environment: ours, without telemetry and without other addresses."""
    kept = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    return {**_MILDER, **kept, **ENVIRONMENT}


class Writer:
    """A process that writes one evaluation or sweep to MLflow.

    Messages and replies are exchanged whenever something is told, as far as that is
    possible without waiting; what the pipe does not take yet is kept.
    """

    def __init__(self, place: Place, parent: Parent, *, backoff: Sequence[float]) -> None:
        """Start the process.

        Args:
            place: Where it writes.
            parent: The parent run as far as it is known.
            backoff: Pauses in seconds between attempts of a call.
        """
        self._unsent = bytearray()
        self._unread = bytearray()
        self._told = False
        self._outcome = Outcome("", 0, 0, 0, 0, [])
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (closed by finish)
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and our own module)
            [sys.executable, "-P", "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            bufsize=0,
            env=environment(),
            start_new_session=True,  # Ctrl-C is for the search; what is logged stays whole
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("Popen opens the pipes it is asked for")
        self._input, self._replies = self._process.stdin, self._process.stdout
        os.set_blocking(self._input.fileno(), False)
        self._tell(
            {
                "open": {
                    # by pipe, not by argument: arguments are visible to every user
                    "uri": place.uri,
                    "artifact_root": place.artifact_root and str(place.artifact_root),
                    "database": place.database and str(place.database),
                    "parent": as_json(parent),
                    "backoff": list(backoff),
                }
            }
        )

    @property
    def outcome(self) -> Outcome:
        """What the process last reported, about twice a second."""
        self._exchange(wait=False)
        return self._outcome

    def add(self, run: Run) -> None:
        """Hand over a child run; returns at once."""
        self._tell({"run": as_json(run)})

    def finish(self, parent: Parent | None) -> Outcome:
        """Hand over the parent run as it ended, and wait until everything is written.

        Args:
            parent: None when the work was broken off.

        Returns:
            The outcome; with a fault if the process died.
        """
        if parent is not None:
            self._tell({"finish": as_json(parent)})
        self._exchange(wait=True)
        status = self._process.wait()
        if not self._told:
            self._outcome = self._outcome._replace(
                faults=[*self._outcome.faults, self._obituary(status)]
            )
        self._words.close()
        return self._outcome

    def _tell(self, message: dict[str, Any]) -> None:
        if self._input.closed:
            return  # it has died; finish says so
        self._unsent += json.dumps(message).encode() + b"\n"
        self._exchange(wait=False)

    def _exchange(self, *, wait: bool) -> None:
        """Write and read what is possible; with ``wait``, until the process has closed."""
        while not self._replies.closed:
            if wait and not self._unsent:
                self._close_input()
            readable, writable = self._ready(wait=wait)
            if writable:
                self._send()
            if readable:
                self._receive()
            if not (wait or readable or (writable and self._unsent)):
                return

    def _ready(self, *, wait: bool) -> tuple[bool, bool]:
        """Whether there is something to read, and whether what is unsent can be sent."""
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        if self._unsent and not self._input.closed:
            poll.register(self._input, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(None if wait else 0)}
        readable = self._replies.fileno() in ready
        return readable, len(ready) > readable

    def _send(self) -> None:
        try:
            sent = os.write(self._input.fileno(), self._unsent[:_CHUNK])
            del self._unsent[:sent]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._close_input()

    def _close_input(self) -> None:
        self._unsent.clear()
        if not self._input.closed:
            self._input.close()

    def _receive(self) -> None:
        read = os.read(self._replies.fileno(), _CHUNK)
        if not read:
            self._close_input()
            self._replies.close()
            return
        self._unread += read
        *lines, rest = self._unread.split(b"\n")
        self._unread = bytearray(rest)
        for line in lines:
            reply = json.loads(line)
            self._outcome = Outcome(*reply["outcome"])
            self._told = reply.get("done", False)

    def _obituary(self, status: int) -> str:
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, self._words.tell() - _LAST_WORDS))
        last = self._words.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"the writer process ended early ({how}){f': {printable(last)}' if last else ''}"
