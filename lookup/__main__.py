"""Start the command line, for `pulsar_lookup` and `python -m lookup`. All of it is in `cli.py`."""

import os
import sys

__all__ = ["command_line", "main"]

#: First words of commands that ask policies.
_DECIDING = frozenset({"evaluate", "explain", "inspect", "simulate"})
#: As of `cli.py`, which is not loaded yet.
_INTERRUPTED = 130


def main() -> int:
    """Run the command of this process, and return its exit code.

    Python's hashes of texts differ in each process, so a policy that uses them, or the order of a set, would
    decide differently in each run. Spark's workers have hashes without that, and so has a command that runs
    policies. Python starts once more for it, in the same process.
    """
    try:
        _open_standard_files()
        is_deciding = bool(_DECIDING.intersection(sys.argv[1:2]))
        if is_deciding and not os.environ.get("PYTHONHASHSEED") and os.name == "posix":
            os.environ["PYTHONHASHSEED"] = "0"
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
        # Not before, since it takes longer than Python's start.
        from lookup.cli import main as run

        return run()
    except KeyboardInterrupt:
        # While modules are loaded. Later signals are handled in `cli.py`.
        sys.stderr.write("interrupted; nothing was written\n")
        return _INTERRUPTED


def command_line() -> int:
    """Refuse to be the command of PyPI's other project `lookup`, whose script has replaced ours, and return 2."""
    sys.stderr.write(
        "error: this script `lookup` belongs to the other project lookup of PyPI, whose module pulsar-lookup hides; "
        "type pulsar-lookup in its place, or pip uninstall lookup and reinstall pulsar-lookup\n"
    )
    return 2


def _open_standard_files() -> None:
    """Open an empty device for a closed stdin, stdout or stderr. Else children write into the next opened file."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


if __name__ == "__main__":
    sys.exit(main())
