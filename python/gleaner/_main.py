"""The command ``gleaner`` of the wheel."""

import signal
import sys

from . import _gleaner


def main() -> None:
    """Runs the command and exits with its code, as the program does."""
    # Python would only note the signal, and handle it after the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_gleaner.main(sys.argv[1:]))


if __name__ == "__main__":
    main()
