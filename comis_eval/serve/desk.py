"""One thread that owns the memories and answers every call, one after the other.

Nobody ever sees half a write, SQLite keeps its thread, and the loop that speaks the protocol
stays free. A call that was cancelled while it waited is not made; one that runs is finished.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from comis_eval.serve.memories import Answer, Arguments, ServedMemories
from comis_eval.types import Tenancy

_Result = TypeVar("_Result")
Call = Callable[[ServedMemories, Tenancy, Arguments], Answer]


class Desk:
    """Memories as a protocol's loop may use them; open it with ``async with``.

    Args:
        opened: Opens the memories; runs on their own thread.
    """

    def __init__(self, opened: Callable[[], ServedMemories]) -> None:
        self._opened = opened
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memories")
        self._memories: ServedMemories | None = None

    async def __aenter__(self) -> Self:
        try:
            self._memories = await self._run(self._opened)
        except BaseException:
            self._thread.shutdown()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._memories is not None:
            self._thread.submit(self._memories.close)
        self._thread.shutdown()

    async def answer(self, call: Call, tenancy: Tenancy, arguments: Arguments) -> Answer:
        """Run one call when its turn comes.

        Raises:
            ComisEvalError: If the call is refused.
        """
        if self._memories is None:
            raise TypeError("a desk answers inside its `async with`")
        memories = self._memories
        return await self._run(lambda: call(memories, tenancy, arguments))

    async def _run(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
