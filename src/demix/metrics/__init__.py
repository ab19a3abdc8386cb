"""Scores of recovered latents against true factors: held out, with a baseline, with a meaning."""
