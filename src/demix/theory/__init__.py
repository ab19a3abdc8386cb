"""What is identified, by which theorem, under which conditions, and the optimum in closed form."""
