"""May one believe it? A check-up of the theorems' assumptions on one's own data."""
