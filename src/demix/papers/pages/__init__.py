"""Pages, tables and figures that set results beside those of a paper."""
