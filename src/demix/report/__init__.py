"""One-file HTML reports that open offline: figures by plotly or matplotlib, the page by a template.

Inputs are arrays, numbers and strings, so any part of the package can report without this room
knowing about it.
"""

from __future__ import annotations

from demix.report.bars import Bar, bars_svg, write_bars
from demix.report.blocks import (
    Block,
    Example,
    Facts,
    Figure,
    Gallery,
    Page,
    Picture,
    Section,
    Table,
    Text,
    Verdict,
)
from demix.report.checkup import checkup_page
from demix.report.comparison import compare_page
from demix.report.consensus import consensus_page, stability_dots
from demix.report.curves import comparison_bars, concentration_curve
from demix.report.examples import nearest_examples
from demix.report.figures import correlation_heatmap, recovered_scatter
from demix.report.fit import fit_page
from demix.report.grouped import GroupedBars, write_grouped_bars
from demix.report.latents import pair_plot, time_courses
from demix.report.page import render, write_page
from demix.report.panels import panels_svg, write_panels
from demix.report.probe import probe_page
from demix.report.recovery import recovery_page
from demix.report.sections import recovery_sections
from demix.report.series import Panel, Series
from demix.report.table import comparison_figure, table_markdown, table_page
from demix.report.training import training_curve

__all__ = [
    "Bar",
    "Block",
    "Example",
    "Facts",
    "Figure",
    "Gallery",
    "GroupedBars",
    "Page",
    "Panel",
    "Picture",
    "Section",
    "Series",
    "Table",
    "Text",
    "Verdict",
    "bars_svg",
    "checkup_page",
    "compare_page",
    "comparison_bars",
    "comparison_figure",
    "concentration_curve",
    "consensus_page",
    "correlation_heatmap",
    "fit_page",
    "nearest_examples",
    "pair_plot",
    "panels_svg",
    "probe_page",
    "recovered_scatter",
    "recovery_page",
    "recovery_sections",
    "render",
    "stability_dots",
    "table_markdown",
    "table_page",
    "time_courses",
    "training_curve",
    "write_bars",
    "write_grouped_bars",
    "write_page",
    "write_panels",
]
