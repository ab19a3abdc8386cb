"""Running experiments: rows, jobs, their store, and tables next to the published figures."""
