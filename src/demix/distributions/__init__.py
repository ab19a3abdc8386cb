"""Marginal and conditional distributions of latents, with exact samplers and densities."""
