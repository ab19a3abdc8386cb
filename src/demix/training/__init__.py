"""Training: the recipe and the loop."""
