"""A sample as a dataset folder that waits for its memories and its labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from comis_eval.datasets import records
from comis_eval.datasets.contents import QUERIES
from comis_eval.datasets.dataset import Dataset
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.judgments import Judgments
from comis_eval.datasets.sampling.sample import Sample, Stratum
from comis_eval.datasets.write import header_of, new_folder, write_header, write_objects
from comis_eval.text import markdown

CARD, WEIGHTS = "README.md", "sample.json"


def write_sample(sample: Sample, folder: Path, *, name: str) -> Path:
    """Write ``dataset.yaml``, the queries, a card that says how they were drawn, and weights.

    Args:
        sample: What was drawn.
        folder: Where to; it must not exist, or be empty.
        name: Of the dataset.

    Raises:
        DatasetError: If the folder holds something.
        OSError: If it cannot be written.
    """
    queries = tuple(one.query for one in sample.drawn)
    about = Dataset(
        name=name,
        version="0",
        description=(
            f"{len(queries)} of {sample.distinct} different queries of a log, drawn by strata; "
            "not labelled yet."
        ),
        memories=(),
        queries=queries,
        judgments=Judgments.of((), n_queries=len(queries)),
    )
    with new_folder(folder) as part:
        write_header(header_of(about), part / HEADER)
        write_objects(part / QUERIES, map(records.query_row, queries))
        (part / CARD).write_text(_card(sample, name), encoding="utf-8", newline="\n")
        weights = json.dumps(_weights(sample), indent=1)
        (part / WEIGHTS).write_text(weights + "\n", encoding="utf-8", newline="\n")
    return folder


def _weights(sample: Sample) -> dict[str, Any]:
    return {
        "seed": sample.seed,
        "lines": sample.lines,
        "unusable": len(sample.bad),
        "distinct": sample.distinct,
        "strata": [
            {
                "agent": one.agent,
                **one.kind._asdict(),
                "frequency": one.frequency,
                "queries": one.queries,
                "askings": one.askings,
                "expected": one.expected,
                "drawn": one.drawn,
            }
            for one in sample.strata
        ],
        "queries": [
            {
                "id": one.query.id,
                "line": one.line,
                "askings": one.askings,
                "stratum": one.stratum,
                "weight": one.weight,
            }
            for one in sample.drawn
        ],
    }


def _card(sample: Sample, name: str) -> str:
    rows = [
        f"| {' | '.join(_cells(one))} |"
        for one in sorted(sample.strata, key=lambda one: -one.queries)
    ]
    ignored = (
        f"Keys of the log that were not read: {', '.join(map(markdown, sample.ignored))}.\n"
        if sample.ignored
        else ""
    )
    undated = (
        f"{sample.undated} of the queries drawn had no time; their `now` is the draw's, or what "
        "--now said.\n"
        if sample.undated
        else ""
    )
    return f"""# {markdown(name)}

{len(sample.drawn)} real queries, to be labelled. They are what people typed: nothing was redacted
unless whoever drew them says so here. There are no memories and no judgments in this folder yet.

## How they were drawn
- {sample.lines} lines in the log, {len(sample.bad)} of them unusable and left out; {sample.usable}
  usable lines hold {sample.distinct} different queries (text, earlier turns and tenancy alike).
- Strata: agent, length (below 20 characters, below 80, longer), script of most letters, whether
  it holds identifiers or digits, whether it is put as a question (marks, or English question
  words at the start), how often it was asked (once, 2 to 9 times, 10 times or more).
- A stratum of N different queries is expected to give a number in proportion to the root of N, so
  rare kinds are drawn more often than they occur. Systematic draw, seed {sample.seed}: every
  different query of the log had a known chance above 0.
- `sample.json` holds for each query its `weight`, 1 / its chance: how many different queries it
  stands for. For a mean over the log's different queries weigh by `weight`, for one over its
  traffic by `weight` x `askings`. An unweighted mean is one over this sample only.

{ignored}{undated}
| agent | length | script | identifiers | question | asked | different | lines | expected | drawn |
|---|---|---|---|---|---|---:|---:|---:|---:|
{chr(10).join(rows)}

## Next
Put `memories.jsonl` of the same moment beside it, then `comis-eval judge` this folder.
"""


def _cells(one: Stratum) -> Sequence[str]:
    return (
        markdown(one.agent),
        one.kind.length,
        markdown(one.kind.script),
        "yes" if one.kind.identifiers else "no",
        "yes" if one.kind.question else "no",
        one.frequency,
        str(one.queries),
        str(one.askings),
        f"{one.expected:.1f}",
        str(one.drawn),
    )
