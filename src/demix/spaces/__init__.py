"""Latent spaces: where the factors live and how an encoder's output gets there."""
