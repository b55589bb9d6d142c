"""What mkdocs calls: pages of the reference are written when the site is built.

They are made from docstrings, click's commands, the configuration's models and the registry
of metrics, so that they cannot be out of date; none of them is a file of the repository.
"""

from __future__ import annotations

import command_page
import error_page
import metric_page
import python_page
import setting_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGES = {
    "reference/commands.md": command_page.page,
    "reference/settings.md": setting_page.page,
    "reference/metrics.md": metric_page.page,
    "reference/python.md": python_page.page,
    "reference/errors.md": error_page.page,
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the files of the site."""
    for path, page in PAGES.items():
        files.append(File.generated(config, path, content=page()))
    return files
