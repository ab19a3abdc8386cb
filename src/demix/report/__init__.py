"""One-file HTML reports that open offline, built from plain results."""
