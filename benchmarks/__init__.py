"""What demix costs, beside the definitions, its peers and the machine's own limit."""
