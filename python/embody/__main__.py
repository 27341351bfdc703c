"""Runs the program with the arguments of ``python -m embody``."""

import os
import sys

from embody import program

try:
    os.execv(program(), ["embody", *sys.argv[1:]])
except OSError as why:
    print(f"embody: {why}", file=sys.stderr)
    # A mail system that runs this command as a filter tries again later, because 75 is a temporary error (EX_TEMPFAIL).
    sys.exit(75)
