"""Runs and sweeps to track, with fixed clocks."""

from comis_eval.tracking import Parent, Run, TrackedDataset

START_MS = 1_700_000_000_000
FINGERPRINT = "0123456789abcdef" * 4
DATASET = TrackedDataset("starter", FINGERPRINT, "1", "f" * 64)


def run(number, **changes):
    given = {
        "key": str(number),
        "name": f"trial {number}",
        "params": {"rag.scoring.recencyAlpha": 0.05 * number, "rag.rerank.enabled": False},
        "metrics": {"utility": 0.5 + number, "recall@5": 0.25},
        "tags": {},
        "status": "FINISHED",
        "started_ms": START_MS + number,
        "ended_ms": START_MS + number + 9,
        "score": 0.5 + number,
    }
    return Run(**{**given, **changes})


def sweep(**changes):
    given = {
        "experiment": "starter",
        "name": "sweep of starter",
        "dataset": DATASET,
        "started_ms": START_MS,
        "ended_ms": START_MS + 5000,
        "key": "study-1",
        "params": {"seed": 0, "sampler": "tpe"},
        "metrics": {"best.utility": 0.75},
        "tags": {"semantics": "documented"},
        "commit": "ede342d",
        "resume": "comis-eval sweep datasets/starter --resume --trials 0",
    }
    return Parent(**{**given, **changes})
