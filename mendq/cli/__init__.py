"""The command `mendq` for operators. It may import every other package; none imports it."""
