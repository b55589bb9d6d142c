"""Baseline, policy and dataset as a commit holds them, so that a change cannot bless itself."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from comis_eval.datasets import load_dataset
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation
from comis_eval.text import printable

_SECONDS = 60
_FILE_MODES = ("100644", "100755")
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager")
"""No monitor and no hook of the repository runs; filters it has configured do, as for any git."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a commit holds, on disk for as long as it is needed.

    Attributes:
        commit: Its hash.
        baseline: The baseline as it is there.
        policy: The policy as it is there; None when none was asked for.
        dataset: The dataset's folder as it is there; None when the commit has none.
        touched: Files among these, or within, that the change makes different, sorted.
        notes: What could not be taken from the commit.
    """

    commit: str
    baseline: Path
    policy: Path | None
    dataset: Path | None
    touched: tuple[str, ...]
    notes: tuple[str, ...]


@contextmanager
def at_reference(
    ref: str, *, baseline: Path, policy: Path | None, dataset: Path
) -> Iterator[Reference]:
    """Take baseline, policy and dataset from a commit instead of from the working tree.

    A change is what lies between the working tree and where it left the commit's branch.

    Args:
        ref: A branch, tag or hash, such as ``origin/main``.
        baseline: Where it would be in the working tree.
        policy: Where it would be; None: the default one, in code.
        dataset: Where its folder would be; a commit may be without it.

    Raises:
        EvaluationError: If there is no such commit, or it lacks baseline or policy.
    """
    top = Path(os.fsdecode(_git(["rev-parse", "--show-toplevel"], Path()).rstrip(b"\n")))
    commit = _commit(ref, top)
    base = _merge_base(commit, ref, top)
    held = _inside(baseline, top)
    paths = {
        "baseline": held,
        "policy": None if policy is None else _inside(policy, top),
        "dataset": _inside(dataset, top),
    }
    asked = [path for path in paths.values() if path is not None]
    with tempfile.TemporaryDirectory(prefix="comis-eval-") as folder:
        taken = {
            name: _take(commit, path, top, Path(folder) / name)
            for name, path in paths.items()
            if path is not None
        }
        # Beside the baseline, where its trace is looked for; a commit may be without it.
        trace = held.with_suffix(".trace.parquet")
        _take(commit, trace, top, Path(folder) / "baseline")
        for name in ("baseline", "policy"):
            if name in taken and taken[name] is None:
                raise EvaluationError(
                    f"--baseline-ref {_shown(ref)}: that commit holds no {paths[name]}; the {name} "
                    "must be there before a change can be held against it"
                )
        notes = []
        if taken["dataset"] is None:
            notes.append(
                f"{_shown(ref)} holds no {paths['dataset']}: that both were measured on the "
                "baseline's dataset is told by its fingerprint alone"
            )
        found = taken["baseline"]
        if found is None:  # told above; for the type checker
            raise EvaluationError(f"--baseline-ref {_shown(ref)}: holds no baseline")
        yield Reference(
            commit,
            found,
            taken.get("policy"),
            taken["dataset"],
            _touched(base, asked, top),
            tuple(notes),
        )


def check_dataset(reference: Reference, candidate: Evaluation) -> None:
    """Refuse a candidate that was measured on another dataset than the commit holds.

    Raises:
        EvaluationError: If so.
        DatasetError: If the commit's dataset cannot be read.
    """
    if reference.dataset is None:
        return
    there, here = load_dataset(reference.dataset).fingerprint, candidate.dataset["fingerprint"]
    if there != here:
        touched = ", ".join(map(printable, reference.touched)) or "none of its files"
        raise EvaluationError(
            f"the candidate was measured on {_shown(candidate.dataset['name'])} "
            f"{printable(here[:12])}, the commit {reference.commit[:12]} holds {there[:12]} (the "
            f"change touches {touched}); evaluate the candidate on the commit's dataset"
        )


def _commit(ref: str, top: Path) -> str:
    try:
        found = _git(["rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}"], top)
    except EvaluationError as error:
        raise EvaluationError(
            f"--baseline-ref {_shown(ref)}: there is no such commit here; fetch it first"
        ) from error
    return found.decode("ascii").strip()


def _merge_base(commit: str, ref: str, top: Path) -> str:
    try:
        return _git(["merge-base", commit, "HEAD"], top).decode("ascii").strip()
    except EvaluationError as error:
        raise EvaluationError(
            f"--baseline-ref {_shown(ref)}: this clone does not reach back to where the change "
            "left it; fetch the whole history (actions/checkout: fetch-depth: 0)"
        ) from error


def _inside(path: Path, top: Path) -> PurePosixPath:
    """The path as the repository names it."""
    # Not resolved: a link in the working tree belongs to the change.
    whole = Path(os.path.abspath(path))  # noqa: PTH100
    for root in (top, top.resolve()):
        if whole.is_relative_to(root):
            return PurePosixPath(whole.relative_to(root).as_posix())
    resolved = whole.parent.resolve() / whole.name
    if resolved.is_relative_to(top.resolve()):
        return PurePosixPath(resolved.relative_to(top.resolve()).as_posix())
    raise EvaluationError(
        f"--baseline-ref: {path} is outside of the repository {top}, so no commit holds it"
    )


def _take(commit: str, path: PurePosixPath, top: Path, target: Path) -> Path | None:
    """Write a file or folder of a commit; None when it holds none."""
    listed = _git(["ls-tree", "-r", "-z", "--full-tree", commit, "--", str(path)], top)
    entries = [entry for entry in listed.split(b"\0") if entry]
    if not entries:
        return None
    for entry in entries:
        told, _, name = entry.partition(b"\t")
        mode, _, blob = told.decode("ascii").split(" ")
        inner = PurePosixPath(os.fsdecode(name))
        if mode not in _FILE_MODES:
            raise EvaluationError(
                f"--baseline-ref: {printable(str(inner))} is no plain file in that commit"
            )
        place = target / path.name / inner.relative_to(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(_git(["cat-file", "blob", blob], top))
    return target / path.name


def _touched(base: str, paths: Sequence[PurePosixPath], top: Path) -> tuple[str, ...]:
    """Files that differ between the commit that a change left and the working tree."""
    names = [str(path) for path in paths]
    changed = _git(
        ["diff", "--no-ext-diff", "--no-textconv", "--name-only", "-z", base, "--", *names], top
    )
    added = _git(["ls-files", "--others", "--exclude-standard", "-z", "--", *names], top)
    return tuple(sorted({os.fsdecode(name) for name in (changed + added).split(b"\0") if name}))


def _git(arguments: Sequence[str], folder: Path) -> bytes:
    command = ["git", *_SAFE, "--literal-pathspecs", *arguments]
    try:
        done = subprocess.run(  # noqa: S603  (a list of arguments, no shell)
            command, cwd=folder, capture_output=True, check=True, timeout=_SECONDS
        )
    except FileNotFoundError as error:
        raise EvaluationError("--baseline-ref needs git, which is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise EvaluationError(f"git {arguments[0]} took longer than {_SECONDS} s") from error
    except subprocess.CalledProcessError as error:
        said = printable(error.stderr.decode("utf-8", "replace").strip(), limit=200)
        raise EvaluationError(f"git {arguments[0]}: {said}") from error
    return done.stdout


def _shown(text: str) -> str:
    return f"'{printable(text, limit=80)}'"
