"""The same on a device of torch; loaded where a tensor shows up."""
