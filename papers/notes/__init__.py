"""*Linear and nonlinear dimensionality reduction*: its ten figures."""
