"""`python -m validation` does what `sinkscope` does."""

import sys

from validation.cli import main

if __name__ == "__main__":
    sys.exit(main())
