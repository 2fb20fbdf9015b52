"""`python -m gtx` is `gtx`."""

from __future__ import annotations

import sys

from gtx.cli import main

if __name__ == "__main__":
    sys.exit(main())
