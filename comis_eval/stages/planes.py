"""Planes of a candidates table and how they move between column space and list space.

Arrays are shape (q, c) in column space; an order alone says how the columns stand in a list.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Ranks = NDArray[np.int32]
Floats = NDArray[np.float64]
Order = NDArray[np.intp]
_T = TypeVar("_T", bound=np.generic)


def mark(plane: NDArray[np.int8], who: Mask, number: np.int8) -> None:
    """Write a number where the mask is true: sums are many times as fast as choosing."""
    plane += (number - plane) * who.view(np.int8)


def along(plane: NDArray[_T], order: Order) -> NDArray[_T]:
    """From column space to list space."""
    return plane.take(flat(order, plane.shape[1]))


def back(listed: NDArray[_T], order: Order) -> NDArray[_T]:
    """From list space to column space."""
    plane = np.empty_like(listed)
    plane.put(flat(order, listed.shape[1]), listed)
    return plane


def position(order: Order) -> Order:
    """Where each column stands in the list."""
    return back(np.broadcast_to(np.arange(order.shape[1]), order.shape), order)


def flat(order: Order, width: int) -> Order:
    """Places in the flattened plane; what take_along_axis works out dimension by dimension."""
    return order + np.arange(len(order))[:, None] * width


def grown(plane: NDArray[_T], width: int, value: object) -> NDArray[_T]:
    """The same plane over more columns, which hold the value."""
    missing = width - plane.shape[1]
    if missing == 0:
        return plane
    return np.pad(plane, ((0, 0), (0, missing)), constant_values=value)  # type: ignore[call-overload,no-any-return]
