"""`python -m ergodic …` is `ergodic …`, with the program that is installed for this Python."""

import os
import sys

from ._program import Error, path

if __name__ == "__main__":
    try:
        program = path()
    except Error as e:
        sys.exit(f"error: {e}")
    os.execv(program, [program, *sys.argv[1:]])
