"""Reports that people read: figures, each one function, and the page that holds them all.

::

    write_report(Path("main.json"), Path("branch.json"), out=Path("report.html"))
    save_figures("evaluation", Path("main.json"), Path("figures"))
"""

from comis_eval.report.files import save_figures
from comis_eval.report.write import write_report

__all__ = ["save_figures", "write_report"]
