"""Scales of data: kernel bandwidths, intrinsic dimension, and the scale that connects points."""
