"""``python -m limes``: the command, where its name is not on the path."""

import sys

from limes.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
