"""One command a file: ask, show, end with a number."""
