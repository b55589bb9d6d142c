"""What a sweep may vary: an ordered list of knobs, read from YAML or the default one.

```yaml
knobs:
  rag.scoring.recencyAlpha: {low: 0, high: 1}
  rag.rerank.enabled:                             # true and false
  rag.rerank.maxCandidates: {low: 5, high: 100, log: true}
  harness.fusion.kind: {choices: [rrf, convex]}   # a what-if: not exportable
```

A knob below a switch (``rag.rerank.maxCandidates`` below ``rag.rerank.enabled``) is asked
for only while the switch is on; ``when:`` adds conditions of one's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from comis_eval.config import Config, find_knob, settings, shown
from comis_eval.config_file import read_yaml
from comis_eval.errors import ConfigError
from comis_eval.text import close_matches, printable, sha256_text
from comis_eval.tuning.knob import Knob, Suggests, Value, is_one_of, knob

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_SWITCHES = {
    "rag.scoring.usefulnessAlpha": "rag.feedback.enabled",
    **{
        ".".join(setting.keys): f"{'.'.join(setting.keys[:-1])}.enabled"
        for setting in settings()
        if setting.keys[0] == "rag" and setting.keys[-1] != "enabled"
        if any((*setting.keys[:-1], "enabled") == other.keys[: len(setting.keys)] for other in settings())
        and len(setting.keys) > 2
    },
}
