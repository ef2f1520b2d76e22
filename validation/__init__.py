"""Shows that the numbers are right, and what they say."""
