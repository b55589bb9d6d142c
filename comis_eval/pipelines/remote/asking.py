"""A whole query set put to a live system: so many calls at a time, each given its chances."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from comis_eval.config import RemoteConfig
from comis_eval.errors import RemoteError
from comis_eval.pipelines.remote.answers import Answer, Answers, Failure, MalformedError, read
from comis_eval.pipelines.remote.transport import (
    Connect,
    Connection,
    FinalError,
    LostError,
    PassingError,
)

MAX_BACKOFF_S = 30.0

Tell = Callable[[int], None]
"""Told how many queries are done."""


class Call(NamedTuple):
    """One query as the arguments of a call."""

    query_id: str
    arguments: dict[str, Any]


async def ask(
    calls: Sequence[Call], connect: Connect, settings: RemoteConfig, *, seed: int, tell: Tell
) -> Answers:
    """Put every call to the system, over new connections while they break.

    Args:
        calls: What to ask.
        connect: Opens a connection.
        settings: Bounds: concurrency, timeout, retries and the wait between them.
        seed: Of the jitter of that wait.
        tell: Told of each query that is done.

    Raises:
        RemoteError: If not even the first connection can be opened.
    """
    asked = _Asked(calls, settings, random.Random(seed), tell)  # noqa: S311 (no secret)
    opened = False
    while asked.open:
        try:
            async with connect() as connection:
                opened = True
                await asked.over(connection)
        except RemoteError as error:
            if not opened:
                raise
            await asked.missed(f"cannot reconnect: {error}")
        except LostError as error:
            await asked.missed(str(error))
    return Answers(tuple(asked.found[position] for position in range(len(calls))))


class _Asked:
    """How far a query set is: what is found, what is open, how often each was tried."""

    def __init__(
        self, calls: Sequence[Call], settings: RemoteConfig, jitter: random.Random, tell: Tell
    ) -> None:
        self.calls = calls
        self.settings = settings
        self.jitter = jitter
        self.tell = tell
        self.found: dict[int, Answer | Failure] = {}
        self.attempts = [0] * len(calls)

    @property
    def open(self) -> list[int]:
        """Positions without an answer or a failure."""
        return [position for position in range(len(self.calls)) if position not in self.found]

    async def over(self, connection: Connection) -> None:
        """Ask what is open until all is done or the connection is lost."""
        import anyio

        waiting = iter(self.open)
        lost: list[str] = []

        async def work() -> None:
            for position in waiting:
                if lost:
                    return
                try:
                    await self._settle(position, connection)
                except LostError as error:
                    lost.append(str(error))
                    self._count(position, str(error))
                    return

        async with anyio.create_task_group() as group:
            for _ in range(self.settings.concurrency):
                group.start_soon(work)
        if lost and self.open:
            await self._wait(1)

    async def missed(self, reason: str) -> None:
        """Count an attempt of every open call, none of which could be sent."""
        for position in self.open:
            self._count(position, reason)
        if self.open:
            await self._wait(max(self.attempts[position] for position in self.open))

    async def _settle(self, position: int, connection: Connection) -> None:
        """Ask one until it is answered or its chances are spent."""
        while position not in self.found:
            try:
                self._keep(position, await self._once(position, connection))
            except FinalError as error:
                self.attempts[position] += 1
                self._keep(position, Failure(str(error), self.attempts[position]))
            except (PassingError, MalformedError) as error:
                self._count(position, str(error))
                if position not in self.found:
                    await self._wait(self.attempts[position])

    async def _once(self, position: int, connection: Connection) -> Answer:
        import anyio

        start = time.perf_counter()
        try:
            with anyio.fail_after(self.settings.timeout_ms / 1000):
                payload = await connection.call(self.calls[position].arguments)
        except TimeoutError:
            raise PassingError(f"no answer within {self.settings.timeout_ms} ms") from None
        taken = (time.perf_counter() - start) * 1000
        ids, chars = read(
            payload,
            results_field=self.settings.results_field,
            id_field=self.settings.id_field,
        )
        return Answer(ids, chars, taken, self.attempts[position] + 1)

    def _count(self, position: int, reason: str) -> None:
        """An attempt is spent; after the last the query has failed."""
        self.attempts[position] += 1
        if self.attempts[position] > self.settings.retries:
            self._keep(position, Failure(reason, self.attempts[position]))

    def _keep(self, position: int, found: Answer | Failure) -> None:
        self.found[position] = found
        self.tell(len(self.found))

    async def _wait(self, attempts: int) -> None:
        """Wait before another attempt, longer each time, never in step with others."""
        import anyio

        longest = self.settings.backoff_ms / 1000 * 2.0 ** (attempts - 1)
        await anyio.sleep(min(longest, MAX_BACKOFF_S) * (0.5 + self.jitter.random() / 2))
