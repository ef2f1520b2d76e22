"""The NumPy oracle: it re-implements the model and defines every measure."""
