"""What a representation tells of known factors: linear read-outs, each beside chance."""
