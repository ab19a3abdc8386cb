"""Running the papers' experiments: cells, their store, and tables beside the published figures."""

from demix.reproduce.cell import run_cell
from demix.reproduce.runner import reproduce
from demix.reproduce.store import Store
from demix.reproduce.table import SCORES, write_tables
from demix.reproduce.trial import Report
from demix.reproduce.watcher import Cell, Watcher

__all__ = ["SCORES", "Cell", "Report", "Store", "Watcher", "reproduce", "run_cell", "write_tables"]
