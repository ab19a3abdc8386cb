"""Pages, tables and figures that show results next to those of a paper."""
