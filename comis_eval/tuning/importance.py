"""Which knobs matter: PED-ANOVA over the finished trials."""

from __future__ import annotations

from comis_eval.tuning.dashboard import copied
from comis_eval.tuning.result import StudyResult

_FEWEST = 10


def importances(study: StudyResult) -> dict[str, float]:
    """Share of the difference between good and other trials that each knob explains.

    Knobs that some trials do not have (they lie below a switch that was off) are left out,
    and so are knobs that never moved. Empty with fewer than ten trials besides the current
    configuration.

    Source: Watanabe, Bansal and Hutter, "PED-ANOVA: Efficiently Quantifying Hyperparameter
    Importance in Arbitrary Subspaces", IJCAI 2023.
    """
    import optuna

    from comis_eval.tuning.storage import quiet

    records = [r for r in study.trials if r.state == "complete" and r.number > 0]
    shared = [
        path
        for path in study.task.space.distributions
        if all(path in record.params for record in records)
        and len({record.params[path] for record in records}) > 1
    ]
    if len(records) < _FEWEST or not shared:
        return {}
    with quiet():
        found = optuna.importance.get_param_importances(
            copied(study, records, knobs=shared),
            evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
            params=shared,
            target=None if len(study.objectives) == 1 else lambda trial: trial.values[0],
        )
    return {path: float(share) for path, share in found.items()}
