"""`python -m launchlint`, which also works in a bare checkout."""

from __future__ import annotations

import sys

from launchlint.cli import main

if __name__ == "__main__":
    sys.exit(main())
