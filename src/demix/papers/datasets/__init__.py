"""Data of the papers, photographs, images with known factors, pairs, and views of images."""
