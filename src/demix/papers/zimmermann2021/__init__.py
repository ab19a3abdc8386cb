"""Zimmermann et al. (2021): Contrastive Learning Inverts the Data Generating Process."""
