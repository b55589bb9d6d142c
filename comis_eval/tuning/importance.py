"""Which knobs matter: PED-ANOVA over the finished trials."""

from __future__ import annotations

import warnings

from comis_eval.tuning.dashboard import copied
from comis_eval.tuning.result import StudyResult

_FEWEST = 10


def importances(study: StudyResult) -> dict[str, float]:
    """Share of the difference between good and other trials that each knob explains.

    Of several objectives the first says which trials are good.
    Knobs that some trials do not have (they lie below a switch that was off) are left out,
    and so are knobs that never moved. Empty with fewer than ten trials besides the current
    configuration, and where the good trials cannot be told from the others.

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
    sign = study.objectives[0].sign
    with quiet(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* importances of params to achieve low")
        # It would go on and call all knobs equally important.
        warnings.filterwarnings("error", message="Target and region quantiles select the same")
        try:
            found = optuna.importance.get_param_importances(
                copied(study, records, knobs=shared),
                evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
                params=shared,
                target=lambda trial: -sign * trial.values[0],  # a target is minimized
            )
        except UserWarning:
            return {}
    return {path: float(share) for path, share in found.items()}
