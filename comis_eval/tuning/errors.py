"""What can go wrong with a study itself; settings that cannot be searched are ConfigErrors."""

from __future__ import annotations

from comis_eval.errors import ComisEvalError


class StudyError(ComisEvalError):
    """A study that cannot be run, resumed or joined."""
