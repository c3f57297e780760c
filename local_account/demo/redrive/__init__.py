"""The story of two hundred dead letters: what kills them, mends that, and sends them back."""
