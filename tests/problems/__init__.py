"""What tests share: point clouds, cases whose answers are known, scikit-learn's checks."""
