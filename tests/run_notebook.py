"""Run a notebook by the Python that runs this, in a folder, and keep it with its outputs.

Usage: python -m tests.run_notebook NOTEBOOK FOLDER OUT SECONDS

A process of its own: what Jupyter's client leaves open when it is done is not the tests'.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

_TRANSPORT = {"transport": "ipc"} if os.name == "posix" else {}
"""Sockets in a folder of ours, where there are such: TCP would be open to the whole machine."""


def run(path: Path, folder: Path, *, seconds: int) -> nbformat.NotebookNode:
    """Run it from top to bottom; no kernel needs to be installed.

    Args:
        path: The notebook; it is only read.
        folder: Where it runs.
        seconds: How long a cell may take.

    Raises:
        CellExecutionError: If a cell fails.
    """
    book = nbformat.read(path, as_version=4)
    # a short path: the kernel's sockets stand in it
    with tempfile.TemporaryDirectory(prefix="nb") as place:
        os.environ |= {"JUPYTER_RUNTIME_DIR": place, "IPYTHONDIR": str(Path(place) / "ipython")}
        spec = Path(place) / "kernels" / "tests"
        spec.mkdir(parents=True)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        told = {"argv": argv, "display_name": "tests", "language": "python"}
        (spec / "kernel.json").write_text(json.dumps(told), encoding="utf-8")
        specs = KernelSpecManager(kernel_dirs=[str(spec.parent)], ensure_native_kernel=False)
        manager = AsyncKernelManager(
            kernel_name="tests",
            kernel_spec_manager=specs,
            **_TRANSPORT,
        )
        if "transport" in _TRANSPORT:
            manager.ip = str(Path(place) / "socket")
        client = NotebookClient(
            book, km=manager, timeout=seconds, resources={"metadata": {"path": str(folder)}}
        )
        client.execute(cleanup_kc=True)
    return book


if __name__ == "__main__":
    _, notebook, where, out, most = sys.argv
    made = run(Path(notebook), Path(where), seconds=int(most))
    nbformat.write(made, Path(out))
