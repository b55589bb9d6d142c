"""Where the golden vectors are: the project's copy, or the folder COMIS_EVAL_GOLDEN names."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

COPY = Path(__file__).parent / "golden"


@cache
def golden(system: str, name: str) -> dict[str, Any]:
    """One golden file, whole: ``golden("memory-recall", "fuse")``."""
    root = Path(os.environ.get("COMIS_EVAL_GOLDEN", COPY))
    return json.loads((root / system / f"{name}.json").read_text(encoding="utf-8"))


def cases(system: str, name: str) -> list[dict[str, Any]]:
    """The cases of one golden file."""
    return golden(system, name)["cases"]
