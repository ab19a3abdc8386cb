"""One-file HTML reports that open offline: figures by plotly or matplotlib, the page by a template.

Inputs are arrays, numbers and strings, so any part of the package can report without this room
knowing about it.
"""
