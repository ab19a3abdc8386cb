"""Puts this folder on the path, so that all tests find `browser` and `command`."""

# Several folders have one; as modules with doctests they would get in each other's way.
collect_ignore_glob = ["*/conftest.py"]
