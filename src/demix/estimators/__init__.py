"""The scikit-learn face: estimators that recover latents from a user's data."""
