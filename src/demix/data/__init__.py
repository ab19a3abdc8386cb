"""Users' data: rows that can be sliced, however many, and checked before anything is trained."""
