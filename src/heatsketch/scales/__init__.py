"""Which scale: bandwidths of a kernel, the dimension of the data, the scale that connects them."""
