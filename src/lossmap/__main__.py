import sys

from lossmap.cli import main

sys.exit(main())
