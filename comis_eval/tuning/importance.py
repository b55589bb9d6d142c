"""Which knobs matter: PED-ANOVA over the finished trials."""

from __future__ import annotations

from comis_eval.tuning.result import StudyResult


def importances(study: StudyResult) -> dict[str, float]:
    """Share of the difference between good and other trials that each knob explains.

    Knobs that some trials do not have (they lie below a switch that was off) are left out,
    and so are knobs that never moved. Empty with fewer than ten distinct trials.

    Source: Watanabe, Bansal and Hutter, "PED-ANOVA: Efficiently Quantifying Hyperparameter
    Importance in Arbitrary Subspaces", IJCAI 2023.
    """
    import optuna

    objective = study.objectives[0]
    records = [r for r in study.trials if r.state == "complete" and r.number > 0]
    distributions = study.task.space.distributions
    shared = [
        path
        for path in distributions
        if all(path in record.params for record in records)
        and len({record.params[path] for record in records}) > 1
    ]
    if len(records) < 10 or not shared:
        return {}
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        copy = optuna.create_study(direction=objective.direction)
        copy.add_trials(
            [
                optuna.trial.create_trial(
                    params={path: record.params[path] for path in shared},
                    distributions={path: distributions[path] for path in shared},
                    value=record.values[0],
                )
                for record in records
            ]
        )
        found = optuna.importance.get_param_importances(
            copy, evaluator=optuna.importance.PedAnovaImportanceEvaluator(), params=shared
        )
    finally:
        optuna.logging.set_verbosity(verbosity)
    return {path: float(share) for path, share in found.items()}
