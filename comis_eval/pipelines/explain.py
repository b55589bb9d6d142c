"""From the arrays of a ranking back to records: one recall, told memory by memory."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np

from comis_eval.candidates import FATES, Rankings
from comis_eval.pipelines.injecting import style_of
from comis_eval.pipelines.scoring import alphas_of
from comis_eval.stages import present, score
from comis_eval.stages.rerank import Outcome, Reason
from comis_eval.types import Candidate, RecallResult


def random_delimiter() -> str:
    """The part of the safety markers that content cannot guess."""
    return secrets.token_hex(present.DELIMITER_LENGTH // 2)


def result(
    rankings: Rankings, query: int, *, delimiter: Callable[[], str] = random_delimiter
) -> RecallResult:
    """One query's answer with its trace.

    Args:
        rankings: What ranking gave.
        query: Position of the query in it.
        delimiter: Where the safety markers' random part comes from.
    """
    told = candidates(rankings, query)
    columns = [c for c in rankings.order[query].tolist() if rankings.fate[query, c] >= 0]
    inline = {i for i, c in enumerate(columns) if rankings.inline[query, c]}
    included = [i for i, c in enumerate(columns) if rankings.included[query, c]]
    mark, style = delimiter(), style_of(rankings.config)
    table = rankings.table
    return RecallResult(
        query=table.queries[query],
        text=table.batch.texts[query],
        section=present.section([told[i].memory for i in included if i not in inline], style, mark),
        inline=next((present.line(told[i].memory, style, mark) for i in inline), None),
        memories=tuple(told[i].memory for i in included),
        ranking=told[: int(rankings.length[query])],
        candidates=told,
        context_chars=int(rankings.context_chars[query]),
        lanes={name: int((lane[query] > 0).sum()) for name, lane in rankings.ranks.items()},
        rerank=(
            Outcome(rankings.rerank_outcome[query]).name.lower(),
            Reason(rankings.rerank_reason[query]).name.lower(),
        ),
        rerank_candidates=int(rankings.rerank_pool[query].sum()),
    )


def candidates(rankings: Rankings, query: int) -> tuple[Candidate, ...]:
    """Every memory a lane returned for a query, in the order of the ranking's trace."""
    table = rankings.table
    row = score.Signals(*(signal[query] for signal in table.signals))
    planes = score.factors(row, alphas_of(rankings.config))
    return tuple(
        Candidate(
            memory=table.corpus.memories[table.rows[query, column]],
            ranks={
                name: int(lane[query, column])
                for name, lane in rankings.ranks.items()
                if lane[query, column] > 0
            },
            fused=float(rankings.fused[query, column]),
            reranker=_known(rankings.reranker[query, column]),
            base=float(rankings.base[query, column]),
            factors={
                name: float(plane[column])
                for name, plane in zip(score.Signals._fields, planes, strict=True)
            },
            final=float(rankings.final[query, column]),
            fate=FATES[rankings.fate[query, column]],
            deduped_by=_keeper(rankings, query, column),
        )
        for column in rankings.order[query].tolist()
        if rankings.fate[query, column] >= 0
    )


def _keeper(rankings: Rankings, query: int, column: int) -> str | None:
    by = int(rankings.deduped_by[query, column])
    table = rankings.table
    return None if by < 0 else table.corpus.memories[table.rows[query, by]].id


def _known(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)
