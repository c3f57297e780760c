"""The command `mendq` for operators. It may import all of `mendq`, which never imports it."""
