"""Generating processes: latents, pairs, labels and the mixings that turn them into observations."""
