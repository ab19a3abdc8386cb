"""Who does the work: this process, others of this machine, or a cluster, behind one interface."""

from demix.workers.beginning import beginning
from demix.workers.choice import opened
from demix.workers.local import Workers
from demix.workers.tasks import Here, completed
from demix.workers.threads import cores, threads

__all__ = ["Here", "Workers", "beginning", "completed", "cores", "opened", "threads"]
