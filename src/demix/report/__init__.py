"""One-file HTML reports that open offline, built from plain results.

Figures are drawn by plotly or matplotlib, the page by a template.
"""
