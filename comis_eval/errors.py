"""Every error this package raises on purpose.

A message says where (file:line, query id, dotted knob), what was found, what is allowed
and what to do. The classes carry no code, so that they pickle between processes. The
command line prints them as one line and exits with 2; anything else is a bug and keeps
its traceback.

ComisEvalError
├── ConfigError       a setting that cannot be used
├── DatasetError      a data file that cannot be used as it is
├── StoreError        a write or read the store refuses
│   └── LaunderingError   a derived memory claims more trust than its sources have
├── ModelError        a model that is missing, damaged or answers out of contract
├── LaneError         a lane that could not search
├── RemoteError       a live system that cannot be asked
├── RequestError      a call of the recall tool with an argument outside what is allowed
├── StageError        a stage was handed inputs that break its contract
├── CoverageError     a configuration reaches outside what the candidates table holds
├── MetricError       a metric cannot be computed from what it was given
├── EvaluationError   an evaluation file that cannot be used, or two that cannot be compared
├── JudgeError        judgments that cannot be taken, read or exported
├── StudyError        a study that cannot be run, resumed or joined
└── TrackingError     the work is saved but could not be tracked
"""


class ComisEvalError(Exception):
    """Base of every error raised on purpose."""


class ConfigError(ComisEvalError):
    """A setting that cannot be used."""


class DatasetError(ComisEvalError):
    """A data file that cannot be used as it is."""


class StoreError(ComisEvalError):
    """A write or read the store refuses."""


class LaunderingError(StoreError):
    """A derived memory claims more trust than its sources have."""


class ModelError(ComisEvalError):
    """A model that is missing, damaged or answers out of contract."""


class LaneError(ComisEvalError):
    """A lane that could not search."""


class RemoteError(ComisEvalError):
    """A live system that cannot be asked."""


class RequestError(ComisEvalError):
    """A call of the recall tool with an argument outside what is allowed."""


class StageError(ComisEvalError):
    """A stage was handed inputs that break its contract."""


class CoverageError(ComisEvalError):
    """A configuration reaches outside what the candidates table holds."""


class MetricError(ComisEvalError):
    """A metric cannot be computed from what it was given."""


class EvaluationError(ComisEvalError):
    """An evaluation file that cannot be used, or two that cannot be compared."""


class JudgeError(ComisEvalError):
    """Judgments that cannot be taken, read or exported."""


class StudyError(ComisEvalError):
    """A study that cannot be run, resumed or joined."""


class TrackingError(ComisEvalError):
    """The work is saved but could not be tracked."""
