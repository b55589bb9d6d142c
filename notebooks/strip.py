"""Take out of a notebook what running it left in it: for git, and for a look before a commit.

Usage: python notebooks/strip.py [NOTEBOOK ...]

With names the files are rewritten where something is to be taken out, and named; without, a
notebook is read from stdin and written to stdout, which is what git calls (.gitattributes).
"""

import json
import sys
from pathlib import Path

KEPT = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"}}  # fmt: skip
"""A notebook's own metadata; versions of somebody's Python are not."""


def stripped(text: str, start: str) -> str:
    """A notebook without outputs, counts and metadata, its cells numbered through.

    Args:
        text: The notebook.
        start: What the ids of its cells start with.
    """
    book = json.loads(text)
    for number, cell in enumerate(book["cells"], start=1):
        cell["id"] = f"{start}-{number:02d}"
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell |= {"execution_count": None, "outputs": []}
        source = cell["source"]
        cell["source"] = (source if isinstance(source, str) else "".join(source)).splitlines(True)
    book |= {"metadata": KEPT, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def main(names: list[str]) -> None:
    """Strip the files named, or stdin."""
    if not names:
        text = sys.stdin.buffer.read().decode("utf-8")
        first = json.loads(text)["cells"][0].get("id", "")
        sys.stdout.buffer.write(stripped(text, first.partition("-")[0]).encode("utf-8"))
    for name in names:
        path = Path(name)
        text = path.read_text("utf-8")
        clean = stripped(text, path.name[:2])
        if clean != text:
            path.write_text(clean, encoding="utf-8")
            sys.stderr.write(f"{name}: stripped\n")


if __name__ == "__main__":
    main(sys.argv[1:])
