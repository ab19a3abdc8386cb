"""Running the papers' experiments: cells, their store, and tables beside the published figures."""
