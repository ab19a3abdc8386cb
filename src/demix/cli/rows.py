"""The rows that a command is given, read before libraries are loaded to learn from them."""

from __future__ import annotations

from demix._support.validation import check_seed
from demix.cli.options import Options
from demix.data.checks import check_data
from demix.data.data import Data
from demix.data.reading import read_data


def read_rows(options: Options) -> Data:
    """Read and check the rows; those that cannot be used are refused."""
    check_seed(options.seed)
    columns = None if options.columns is None else options.columns.split(",")
    data = read_data(options.file, key=options.key, columns=columns, header=options.header)
    check_data(data)
    return data
