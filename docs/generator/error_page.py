"""The page of errors: the tree, and what each stands for."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import markup

from comis_eval import errors

INTRODUCTION = """\
Every error that `comis_eval` raises on purpose is a `ComisEvalError`. A message says where, \
what was found, what is allowed and what to do. The command line prints it as one line and exits \
with 2, `TrackingError` with 5. Other exceptions are bugs.
"""


def page() -> str:
    """The tree as a table, indented by depth."""
    rows = [
        ("&emsp;" * depth + markup.code(one.__name__), markup.inline(inspect.getdoc(one) or ""))
        for depth, one in tree(errors.ComisEvalError)
    ]
    return markup.page("# Errors", INTRODUCTION, markup.table(["Error", "Means"], rows))


def tree(root: type[Exception], depth: int = 0) -> Iterator[tuple[int, type[Exception]]]:
    """An error and all below it that errors.py defines, in the order of that file."""
    yield depth, root
    for one in vars(errors).values():
        if inspect.isclass(one) and root in one.__bases__:
            yield from tree(one, depth + 1)
