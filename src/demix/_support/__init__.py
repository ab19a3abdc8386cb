"""What all rooms use: errors, files, locks, memory, provenance, processes."""
