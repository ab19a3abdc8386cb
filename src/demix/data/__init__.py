"""Users' data: rows that can be sliced, however many, and checked before anything is trained."""

from demix.data.arrays import as_data
from demix.data.checks import Findings, check_data
from demix.data.data import Data
from demix.data.reading import read_data

__all__ = [
    "Data",
    "Findings",
    "as_data",
    "check_data",
    "read_data",
]
