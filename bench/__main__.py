"""``make bench``: how fast and how large the controller is, each figure beside its yardstick and its goal.

    python -m bench [NAME ...]        some of the figures, or all of them
    python -m bench --list            their names

The figures need a disk (the one that holds the checkout), mosquitto, and a machine that does nothing else. Exit status
1 says that a goal is not met.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module

from bench.figures import Figure

BENCHES = {
    "latency": "bench.bench_latency:latency",
    "stakes": "bench.bench_stakes:stakes",
    "messages": "bench.bench_daemon:messages",
    "cut-off": "bench.bench_cut_off:cut_off",
    "ready": "bench.bench_daemon:ready",
    "memory": "bench.bench_daemon:memory",
    "idle": "bench.bench_daemon:idle",
    "replay": "bench.bench_history:replay",
    "verify": "bench.bench_history:verification",
    "proof": "bench.bench_proof:proof",
    "mirror": "bench.bench_mirror:throughput",
    "mirror-catch-up": "bench.bench_mirror:catch_up",
    "mirror-memory": "bench.bench_mirror:memory",
}
"""Where each figure is measured. They are imported when they are wanted: the processes that verify import this too."""


def main() -> int:
    """Measure and print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the figures of the controller.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(BENCHES)}; all when none is given")
    parser.add_argument("--list", action="store_true", help="list the names")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in BENCHES]:
        parser.error(f"there is no figure {unknown[0]!r}; there are {', '.join(BENCHES)}")
    if arguments.list:
        print("\n".join(BENCHES))
        return 0
    print(f"{len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}; Python {sys.version.split()[0]}")
    missed = 0
    for name in arguments.names or BENCHES:
        for figure in _bench(name)():
            print(figure.line, flush=True)
            missed += not figure.met
    return 1 if missed else 0


def _bench(name: str) -> Callable[[], Iterator[Figure]]:
    module, _, function = BENCHES[name].partition(":")
    measure: Callable[[], Iterator[Figure]] = getattr(import_module(module), function)
    return measure


if __name__ == "__main__":
    sys.exit(main())
