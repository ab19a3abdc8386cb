"""How often the check-up is right: processes whose truth is known."""
