"""One worker process: ``python -m comis_eval.tuning.worker``, its work as JSON on stdin."""

from __future__ import annotations

import sys

from comis_eval.errors import ComisEvalError
from comis_eval.text import mask_credentials
from comis_eval.tuning.workers import WorkerSpec, joined


def main() -> int:
    """Run trials until the study has enough.

    Returns:
        0, or 2 for an error that standard error explains in its last line.
    """
    try:
        spec = WorkerSpec.from_json(sys.stdin.read())
        with joined(spec, spec.task()) as search:
            for _record in search.run(spec.trials):
                pass
    except ComisEvalError as error:
        sys.stderr.write(f"{mask_credentials(str(error))}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
