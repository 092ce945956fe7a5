"""`python -m commonplace`."""

import sys

from commonplace.cli import main

sys.exit(main())
