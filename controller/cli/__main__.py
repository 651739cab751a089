"""``python -m controller.cli``: the same as ``tablectl``."""

from controller.cli import main

if __name__ == "__main__":
    main(prog_name="tablectl")
