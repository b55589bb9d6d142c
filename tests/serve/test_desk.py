"""The one thread: calls in turn, a call taken back, and what opening may say."""

import asyncio
import threading

import pytest

from comis_eval.errors import StoreError
from comis_eval.serve.desk import Desk
from comis_eval.serve.memories import ServedMemories
from tests.pipelines.recall_tool.world import ME
from tests.serve.world import served


def test_a_call_that_is_cancelled_while_it_waits_is_not_made_and_one_that_runs_is_finished():
    begun, release, made = threading.Event(), threading.Event(), []

    def call(_, __, arguments):
        begun.set()
        release.wait(10)
        made.append(arguments["n"])
        return {}

    async def work():
        async with Desk(served) as desk:
            running = asyncio.create_task(desk.answer(call, ME, {"n": 1}))
            await asyncio.to_thread(begun.wait, 10)
            waiting = asyncio.create_task(desk.answer(call, ME, {"n": 2}))
            last = asyncio.create_task(desk.answer(call, ME, {"n": 3}))
            await asyncio.sleep(0)
            running.cancel()
            waiting.cancel()
            await asyncio.sleep(0)
            release.set()
            await last
        return [running.cancelled(), waiting.cancelled()]

    assert asyncio.run(work()) == [True, True]
    assert made == [1, 3]


def test_every_call_and_the_end_run_on_the_thread_that_opened():
    seen = []

    class Watched(ServedMemories):
        def close(self):
            seen.append(threading.get_ident())
            super().close()

    def opened():
        seen.append(threading.get_ident())
        memories = served(writable=True)
        memories.__class__ = Watched
        return memories

    async def work():
        async with Desk(opened) as desk:
            await asyncio.gather(*(
                desk.answer(lambda *_: seen.append(threading.get_ident()) or {}, ME, {})
                for _ in range(5)
            ))  # fmt: skip

    asyncio.run(work())
    assert len(seen) == 7
    assert len(set(seen)) == 1
    assert seen[0] != threading.get_ident()


def test_what_cannot_be_opened_says_so_and_leaves_no_thread():
    def opened():
        raise StoreError("damaged")

    async def work():
        async with Desk(opened):
            raise AssertionError

    with pytest.raises(StoreError, match="damaged"):
        asyncio.run(work())
    assert not [t for t in threading.enumerate() if t.name.startswith("memories")]


def test_a_desk_answers_only_while_it_is_open():
    with pytest.raises(TypeError, match="inside its `async with`"):
        asyncio.run(Desk(served).answer(ServedMemories.recall, ME, {"query": "kiln"}))
