"""The search for the laptop recipe: variants of it, compared at equal cost.

It stands outside the package on purpose: what loses here must not become an option there.
"""
