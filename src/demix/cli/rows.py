"""The rows that a command is given, read before libraries are loaded to learn from them."""

from __future__ import annotations

from demix.cli.options import Options
from demix.data import Data, check_data, read_data
from demix.validation import check_seed


def read_rows(options: Options) -> Data:
    """Read and check the rows; those that cannot be used are refused."""
    check_seed(options.seed)
    columns = None if options.columns is None else options.columns.split(",")
    data = read_data(options.file, key=options.key, columns=columns, header=options.header)
    check_data(data)
    return data
