"""Images with known factors: the official files of DisLib, COIL-100, and rendered scenes."""
