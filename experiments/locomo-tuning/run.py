"""Tune on some LoCoMo conversations, choose on others, and look once at the rest.

Usage: python experiments/locomo-tuning/run.py LOCOMO10.JSON [--trials 500] [--seed 0]

LoCoMo is CC BY-NC 4.0 and no part of this project; the ids and figures in results.json hold
none of its text.
"""

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from comis_eval.config import Config
from comis_eval.config_file import dump_rag
from comis_eval.datasets import Dataset
from comis_eval.datasets.importers import import_locomo
from comis_eval.metrics import ALL, means, parse
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.stats import compare
from comis_eval.tuning.parts import Bench
from comis_eval.tuning.reach import coverage_of
from comis_eval.tuning.sweep import SweepPlan, default_space, sweep

HERE = Path(__file__).parent
SELECT, TEST = ("conv-43", "conv-47"), ("conv-48", "conv-49", "conv-50")
METRICS = ("utility", "ndcg@10", "recall@5", "hit@5", "context_chars")


def by_conversation(dataset: Dataset) -> Dataset:
    """The same questions, split so that no conversation is in two parts."""
    parts: dict[str, list[str]] = {"tune": [], "select": [], "test": []}
    for group, conversation in {q.group: q.tenancy.tenant_id for q in dataset.queries}.items():
        part = "test" if conversation in TEST else "select" if conversation in SELECT else "tune"
        parts[part].append(group)
    return replace(dataset, splits={name: tuple(groups) for name, groups in parts.items()})


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    return parser


def main() -> None:
    """Sweep, then tell the test conversations one by one."""
    given = parser().parse_args()

    dataset = by_conversation(import_locomo(given.source)[0])
    current, retriever = Config(), Retriever(dataset)
    plan = SweepPlan(name="locomo", trials=given.trials, seed=given.seed)
    result = sweep(dataset, current, plan, retriever=retriever)
    if result.choice is None or result.held_out is None:
        raise SystemExit("the sweep did not come to a choice")
    winner = result.study.config(result.choice.number)

    space = default_space(dataset, current)
    table = retriever.covering(dataset.queries, current, coverage_of(space, current))
    bench = Bench(dataset, table, current, ("utility",))
    conversation = np.array([query.tenancy.tenant_id for query in dataset.queries])
    test = np.flatnonzero(np.isin(conversation, TEST))
    replay = bench.replay(test)
    told: dict[str, object] = {}
    for name in METRICS:
        metric = parse(name)
        scored = {}
        for label, config in (("default", current), ("tuned", winner)):
            inputs, _ = replay.answered(config)
            values = metric(inputs)
            scored[label] = (values, means({metric: values}, inputs)[ALL][name].value)
        difference = scored["tuned"][0] - scored["default"][0]
        if name == "utility":
            weights = replay.query_weights
        else:
            weights = np.array([dataset.headline(dataset.queries[q].category) for q in test], float)
        found = compare(difference, bench.groups[test], weights, conversation[test], seed=0)[0]
        per = {}
        for one in TEST:
            mine = (conversation[test] == one) & ~np.isnan(difference) & (weights > 0)
            per[one] = {
                "mean": float(difference[mine].mean()),
                "better": int((difference[mine] > 0).sum()),
                "worse": int((difference[mine] < 0).sum()),
                "n": int(mine.sum()),
            }
        told[name] = {
            "default": scored["default"][1],
            "tuned": scored["tuned"][1],
            "difference": asdict(found),
            "by_conversation": per,
        }
    report = {
        "command": f"python experiments/locomo-tuning/run.py LOCOMO10.JSON --trials {given.trials}"
        f" --seed {given.seed}",
        "dataset": {"name": dataset.name, "fingerprint": dataset.fingerprint},
        "conversations": {"select": SELECT, "test": TEST},
        "groups": {name: len(groups) for name, groups in dataset.splits.items()},
        "trials": result.study.counts._asdict(),
        "decision": {"outcome": result.decision.outcome, "reasons": result.decision.reasons},
        "floor": result.choice.floor._asdict() if result.choice.floor else None,
        "tuned_gain": result.choice.tuned_gain,
        "winner": dict(result.study.trial(result.choice.number).params),
        "rag": dump_rag(winner),
        "test": told,
    }
    given.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report["decision"], indent=1))  # noqa: T201
    for name, row in told.items():
        print(name, json.dumps(row))  # noqa: T201


if __name__ == "__main__":
    main()
