"""What every room stands on: errors, files, locks, memory, provenance, processes."""
