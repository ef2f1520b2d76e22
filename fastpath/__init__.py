"""The oracle's measures in bulk, compiled with Numba; same names, same answers."""
