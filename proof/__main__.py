"""``make proof``: try every claim about durability and evidence, and write what was found into docs/evidence.md.

    python -m proof [NAME ...]        some of the proofs, or all of them
    python -m proof --list            their names

They take long (all together about an hour on two processors) and show how far they are. Exit status 1 says that a goal
is not met.
"""

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc
from types import ModuleType

from proof.evidence import record
from proof.results import Result

PROOFS = ("crash-states", "io-faults", "power-cuts", "delivery", "flips", "attacks", "orders", "statements", "mutation")
"""Each is the module of the same name, with underscores; its function ``prove`` yields what it found."""


def main() -> int:
    """Prove and print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof", description="Try what the controller claims of itself.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(PROOFS)}; all when none is given")
    parser.add_argument("--list", action="store_true", help="list the names")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in PROOFS]:
        parser.error(f"there is no proof {unknown[0]!r}; there are {', '.join(PROOFS)}")
    if arguments.list:
        print("\n".join(PROOFS))
        return 0
    missed = 0
    for name in arguments.names or PROOFS:
        print(f"━━ {name}", flush=True)
        module = import_module(f"proof.{name.replace('-', '_')}")
        results = []
        for result in _prove(module):
            print(result.line, flush=True)
            results.append(result)
            missed += not result.met
        record(name, cleandoc(module.__doc__ or "").partition("\n")[0], results, PROOFS)
    return 1 if missed else 0


def _prove(module: ModuleType) -> Iterator[Result]:
    results: Iterator[Result] = module.prove()
    return results


if __name__ == "__main__":
    sys.exit(main())
