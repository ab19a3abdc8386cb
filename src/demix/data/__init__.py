"""Users' data: rows that can be sliced, however many, and checked before anything is trained."""

from demix.data.arrays import as_data
from demix.data.beside import check_pairs, check_time, read_pairs, read_time
from demix.data.checks import Findings, check_data
from demix.data.data import Data
from demix.data.factors import KnownFactors, read_factors
from demix.data.labels import Labels, read_labels
from demix.data.reading import read_data

__all__ = [
    "Data",
    "Findings",
    "KnownFactors",
    "Labels",
    "as_data",
    "check_data",
    "check_pairs",
    "check_time",
    "read_data",
    "read_factors",
    "read_labels",
    "read_pairs",
    "read_time",
]
