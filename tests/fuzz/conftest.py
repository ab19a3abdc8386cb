"""Puts this folder on the path, so that its tests find `files` and `reading`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
