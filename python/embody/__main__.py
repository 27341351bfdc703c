"""``python -m embody``: the program with the same words."""

import os
import sys

from embody import program

try:
    os.execv(program(), ["embody", *sys.argv[1:]])
except OSError as why:
    print(f"embody: {why}", file=sys.stderr)
    # A mail system tries again.
    sys.exit(75)
