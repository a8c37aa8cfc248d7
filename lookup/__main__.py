"""Start the command line, for `pulsar_lookup` and `python -m lookup`; all of it is in `cli.py`."""

import os
import sys

__all__ = ["command_line", "main"]

#: First words of commands that ask policies.
_DECIDING = frozenset({"evaluate", "explain", "inspect", "simulate"})
#: As of `cli.py`, which is not loaded yet.
_INTERRUPTED = 130


def main() -> int:
    """Run the command of this process, and return its exit code.

    Python makes hashes of texts anew in each process, so that a policy which goes by them, or by the order of a set,
    would decide otherwise in each run. Spark's workers have hashes without that; so has a command that asks policies:
    Python starts once more for it, in the same process.
    """
    try:
        _open_standard_files()
        is_deciding = bool(_DECIDING.intersection(sys.argv[1:2]))
        if is_deciding and not os.environ.get("PYTHONHASHSEED") and os.name == "posix":
            os.environ["PYTHONHASHSEED"] = "0"
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
        # Not before: it takes longer than Python's start.
        from lookup.cli import main as run

        return run()
    except KeyboardInterrupt:
        # While modules are loaded; later ones are met in `cli.py`.
        sys.stderr.write("interrupted; nothing was written\n")
        return _INTERRUPTED


def command_line() -> int:
    """Refuse to be the command of the other project `lookup` of PyPI, whose script has replaced ours; return 2."""
    sys.stderr.write(
        "error: this script `lookup` belongs to the other project lookup of PyPI, whose module pulsar-lookup hides; "
        "type pulsar-lookup in its place, or pip uninstall lookup and reinstall pulsar-lookup\n"
    )
    return 2


def _open_standard_files() -> None:
    """Open in place of a closed stdin, stdout or stderr what keeps nothing.

    The next file that is opened would take its number, and processes that are started would write into that.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


if __name__ == "__main__":
    sys.exit(main())
