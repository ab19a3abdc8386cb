"""Running the papers' experiments: cells, their store, and tables beside the published figures."""

from demix.reproduce.cell import run_cell
from demix.reproduce.runner import Cell, Watcher, reproduce
from demix.reproduce.store import Store
from demix.reproduce.table import SCORES, write_tables

__all__ = ["SCORES", "Cell", "Store", "Watcher", "reproduce", "run_cell", "write_tables"]
