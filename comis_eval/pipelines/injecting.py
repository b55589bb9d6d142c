"""What of the ranked list is put into the prompt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates
from comis_eval.config import Config
from comis_eval.stages import budget, present
from comis_eval.stages.planes import Floats, Mask, Order, along, back, flat


class Injected(NamedTuple):
    """What is put into the prompt.

    Attributes:
        inline: Who goes beside the user message.
        section: Who goes into the section.
        over_budget: Who did not fit.
        chars: Length of the section, shape (q,); 0 when nothing fits.
    """

    inline: Mask
    section: Mask
    over_budget: Mask
    chars: NDArray[np.int64]


def inject(table: Candidates, config: Config, order: Order, kept: Mask, final: Floats) -> Injected:
    """Decide what goes beside the user message and what into the section.

    The first of the list goes inline when its boosted score reaches ``inlineMinScore``; it
    then leaves the section, which has the whole budget for the others.

    Args:
        table: The candidates.
        config: Budget and switches.
        order: Columns of the list; those that are kept lead it.
        kept: Who is in the list.
        final: Boosted scores.
    """
    rag, semantics = config.rag, config.semantics
    queries, width = kept.shape
    inline = np.zeros(kept.shape, dtype=bool)
    if semantics.inline_min_score is not None and width:
        top, every = order[:, 0], np.arange(queries)
        taken = kept[every, top] & (final[every, top] >= semantics.inline_min_score)
        inline[every[taken], top[taken]] = True
    limit = np.full(queries, rag.max_results if semantics.trim_to_max_results else width)
    limit -= inline.any(axis=1)
    section, over = np.zeros(kept.shape, dtype=bool), np.zeros(kept.shape, dtype=bool)
    # Without an overflow only the head of a list can be injected; the whole of it is looked
    # at where a line that does not fit may let a later one in.
    head = min(width, int(limit.max(initial=0)) + 1)
    fitted = _fitted(table, config, order[:, :head], kept & ~inline, limit, None)
    for plane, part in ((section, fitted.included), (over, fitted.over_budget)):
        plane.put(flat(order[:, :head], width), part)
    chars = fitted.chars
    again = np.flatnonzero(fitted.over_budget.any(axis=1))
    if len(again) and head < width:
        whole = order[again]
        rest = _fitted(table, config, whole, (kept & ~inline)[again], limit[again], again)
        section[again], over[again] = (
            back(rest.included, whole),
            back(rest.over_budget, whole),
        )
        chars[again] = rest.chars
    return Injected(inline, section, over, chars)


def _fitted(
    table: Candidates,
    config: Config,
    order: Order,
    kept: Mask,
    limit: NDArray[np.int64],
    queries: NDArray[np.intp] | None,
) -> budget.Fitted:
    """Fit some columns of some queries' lists, in list space; None: of all queries."""
    held = table.rows if queries is None else table.rows[queries]
    listed = along(kept, order)
    rows = np.where(listed, along(held, order), -1)
    return budget.fit(
        table.facts.line_lengths(style_of(config), rows),
        listed,
        header=present.length(present.HEADER, config.semantics.length_units),
        max_results=limit,
        max_chars=config.rag.max_context_chars,
        overflow=config.semantics.budget_overflow,
    )


def style_of(config: Config) -> present.Style:
    """How the configuration wants lines written and counted."""
    semantics = config.semantics
    return present.Style(semantics.line_format, semantics.wrap, semantics.length_units)


def inline_lengths(table: Candidates, config: Config, inline: Mask) -> NDArray[np.int64]:
    """Length of the line that goes inline, at most one a query, shape (q,); 0 without one."""
    lengths = np.zeros(len(inline), dtype=np.int64)
    queries, columns = np.nonzero(inline)
    rows = table.rows[queries, columns]
    lengths[queries] = table.facts.line_lengths(style_of(config), rows)
    return lengths
