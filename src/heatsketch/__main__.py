"""Run the command line as `python -m heatsketch`."""

import sys

from heatsketch.cli import main

if __name__ == "__main__":
    sys.exit(main())
