"""Defaults on real data beside the tools that people use; outside the wheel."""
