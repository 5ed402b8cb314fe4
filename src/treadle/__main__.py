"""`python -m treadle`: the command line."""

import sys

from treadle.cli import main

sys.exit(main())
