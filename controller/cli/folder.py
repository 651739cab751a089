"""The folder that a rehearsal writes into: empty, or one that was made for this and may be made anew."""

import shutil
from pathlib import Path

from controller.cli.failure import Failure
from controller.cli.language import here
from controller.cli.output import confirm

MARK = "simulation"
"""This file in a folder says that a simulation made it."""


def fresh_folder(folder: Path, *, yes: bool) -> None:
    """Make an empty folder with the mark in it; what an earlier simulation left there goes, after a question.

    Raises Failure (E-SIMULATION-FOLDER) when the folder holds anything else, and OSError.
    """
    if folder.exists():
        if not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARK).exists()):
            detail = here(
                f"{folder} contient autre chose qu'une simulation", f"{folder} holds something else than a simulation"
            )
            raise Failure("E-SIMULATION-FOLDER", detail)
        if any(folder.iterdir()):
            replace = f"Remplacer la simulation de {folder} ?", f"Replace the simulation in {folder}?"
            confirm(here(*replace), yes=yes)
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / MARK).write_text("made by tablectl simulate\n", encoding="utf-8")
