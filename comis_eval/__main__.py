"""``python -m comis_eval``: the command line."""

from comis_eval.cli import main

if __name__ == "__main__":
    main(prog_name="comis-eval")
