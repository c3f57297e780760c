"""Symptoms of a visibility timeout that does not fit how long consumers need."""
