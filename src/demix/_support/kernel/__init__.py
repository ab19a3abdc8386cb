"""The compiled kernel, for processors with a C compiler at hand."""
