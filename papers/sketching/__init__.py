"""*Sketching the heat kernel*: its figures, Theorem 3.3, Propositions 3.4 and 4.1."""
