"""Work in small steps: spread over threads, and stopped between any two of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores() -> int:
    """How many cores this process may use, >= 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def each(
    function: Callable[[Item], Result], items: Sequence[Item], *, threads: int
) -> list[Result]:
    """Apply a function to every item, in the order given.

    Args:
        function: Called once an item, from up to ``threads`` threads at once.
        items: What it is applied to.
        threads: How many calls may run at once, >= 1.

    Returns:
        One result an item.

    Raises:
        Exception: The first one that ``function`` raised; steps not begun are left out.
    """
    if threads == 1 or len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def stop_if(deadline: Callable[[], bool] | None) -> None:
    """Raise TimeoutError when there is a deadline and it has passed."""
    if deadline is not None and deadline():
        raise TimeoutError("the deadline passed before every pair was scored")
