"""Several processes search one study; the same call on another machine joins them.

The study is made once, by the parent, before a worker starts. A worker is a new process
that is handed plain JSON on its standard input: where the study is, and which function
makes the task. Nothing is pickled, and no address with a password stands in a command line.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Self

from comis_eval.errors import StudyError
from comis_eval.text import mask_credentials, printable
from comis_eval.tuning.records import best
from comis_eval.tuning.result import StudyResult
from comis_eval.tuning.study import Progress
from comis_eval.tuning.task import Plan, Task

if TYPE_CHECKING:
    from comis_eval.tuning.search import Search

WORKER_COMMAND = (sys.executable, "-P", "-m", "comis_eval.tuning.worker")
"""A worker; ``-P`` keeps it from importing what lies in the folder it is started in."""

_LOOK = 0.3  # seconds between looks at the study
_END = 10.0  # seconds that a worker has to end when asked to
_EXPECTED = 2  # a worker's exit status after an error it could explain


@dataclass(frozen=True)
class WorkerSpec:
    """All that a worker needs to know, as JSON has it.

    Attributes:
        storage: ``journal:PATH``, or the URL of a database that takes several writers.
        plan: Of the study.
        trials: How many the study shall have.
        build: ``module:function`` that makes the task.
        arguments: What the function is called with.
    """

    storage: str
    plan: Plan
    trials: int
    build: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def task(self) -> Task:
        """Make the task.

        Raises:
            StudyError: If there is no such function, or it makes something else.
        """
        module, _, name = self.build.partition(":")
        try:
            function = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise StudyError(f"{printable(self.build)}: no such function: {error}") from error
        task = function(**self.arguments)
        if not isinstance(task, Task):
            raise StudyError(f"{printable(self.build)}: made a {type(task).__name__}, not a Task")
        return task

    def to_json(self) -> str:
        """As text."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From text.

        Raises:
            StudyError: If it is none.
        """
        try:
            tree = json.loads(text)
            return cls(**{**tree, "plan": Plan(**tree["plan"])})
        except (ValueError, KeyError, TypeError) as error:
            raise StudyError(f"a worker reads its work from standard input: {error}") from error


def run_workers(
    spec: WorkerSpec, n: int, *, required: int | None = None, progress: Progress | None = None
) -> StudyResult:
    """Search with several processes until the study has so many trials.

    A study of the same name and fingerprint is joined. The trial of a worker that was killed
    is run again, under its number. With several workers the order in which they finish
    decides what is proposed, so that two runs differ.

    Args:
        spec: The study.
        n: How many processes to start here, >= 1.
        required: How many trials must be complete; None: half of them.
        progress: Told of each trial of any process; those of one look in their order.

    Raises:
        ConfigError: If a knob does nothing.
        StudyError: If the study cannot be begun or joined, a worker fails, all were killed,
            or too few trials are complete. What is finished is kept.
    """
    if n < 1 or spec.trials < 1:
        raise StudyError(f"there must be a worker and a trial, got {n} and {spec.trials}")
    if spec.storage.startswith("sqlite") and n > 1:
        raise StudyError(
            "SQLite locks out all workers but one; take a PostgreSQL URL or journal:PATH"
        )
    task = spec.task()
    with joined(spec, task) as search, _Crew(spec, n) as crew:
        crew.start()
        leader = best(search.records.values(), task.objectives)
        while True:
            done = crew.ended()
            for record in search.watched():
                leader = best((record, *([leader] if leader else [])), task.objectives)
                if progress is not None:
                    progress(record, leader)
            if done:
                break
            time.sleep(_LOOK)
        unfinished = spec.trials - sum(number < spec.trials for number in search.records)
        if unfinished:
            raise StudyError(
                f"all workers were killed with {unfinished} trials to go; start them again"
            )
    result = StudyResult(
        task, search.records.values(), spec.trials, notes=(*task.notes, *crew.notes)
    )
    result.check_complete(required)
    return result


def joined(spec: WorkerSpec, task: Task) -> AbstractContextManager[Search]:
    """Open the study of a spec to search it; it is made if it is not there."""
    from comis_eval.tuning.opening import in_storage

    return in_storage(
        task,
        spec.plan,
        spec.storage,
        identity=spec.plan.fingerprint(task),
        existing="join",
        parallel=True,
    )


class _Crew:
    """The worker processes of this parent.

    Attributes:
        notes: Which of them were killed.
    """

    def __init__(self, spec: WorkerSpec, n: int) -> None:
        self.notes: tuple[str, ...] = ()
        self._work = spec.to_json().encode()
        self._n = n
        self._running: dict[int, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}

    def __enter__(self) -> Self:
        return self

    def start(self) -> None:
        """Start the processes."""
        for number in range(1, self._n + 1):
            said = tempfile.TemporaryFile()  # noqa: SIM115  closed when the worker has ended
            process = subprocess.Popen(  # noqa: S603  our own module
                WORKER_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said
            )
            self._running[number] = process, said
            if process.stdin is not None:
                with suppress(BrokenPipeError), process.stdin:  # its error tells why
                    process.stdin.write(self._work)

    def __exit__(self, *_: object) -> None:
        for process, _said in self._running.values():
            process.terminate()
        for process, said in self._running.values():
            try:
                process.wait(_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            said.close()

    def ended(self) -> bool:
        """Whether all have ended, well or killed.

        Raises:
            StudyError: If one failed.
        """
        for number, (process, said) in list(self._running.items()):
            if (status := process.poll()) is None:
                continue
            if status < 0:
                self.notes += (f"worker {number} was killed by signal {-status}",)
            elif status > 0:
                said.seek(0)
                lines = said.read().decode("utf-8", "replace").strip().splitlines()
                raise StudyError(f"worker {number} failed: {_last(lines, status)}")
            said.close()
            del self._running[number]
        return not self._running


def _last(lines: list[str], status: int) -> str:
    """An expected error is one line; of a bug, the end of its traceback will do."""
    wanted = lines[-1:] if status == _EXPECTED else lines[-3:]
    said = mask_credentials(" / ".join(line.strip() for line in wanted))
    return printable(said, limit=1_000) or f"exit status {status}"
