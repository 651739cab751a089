"""A child process of the crash tests: commits one record after the other and says so, until something ends it.

Usage: ``python -m tests.controller.certify.crashing_writer JOURNAL``. Each line of its output is the number of entries
that are certified; a fault ends it with its code as the last line and status 3.
"""

import sys
from pathlib import Path

from controller.certify.faults import JournalFault
from tests.controller.certify.workshop import open_journal, stakes


def main() -> int:
    journal = open_journal(Path(sys.argv[1]))
    try:
        while True:
            size = journal.append(stakes(1 + journal.size % 3), snapshot=b"x" * 900).size
            sys.stdout.write(f"{size}\n")
            sys.stdout.flush()
    except JournalFault as fault:
        sys.stdout.write(f"{fault.code}\n")
        sys.stdout.flush()
        return 3


if __name__ == "__main__":
    sys.exit(main())
