"""Linear read-outs of known factors from a representation, each compared with chance."""
