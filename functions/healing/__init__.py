"""Law: nothing here knows AWS, a clock, the environment or randomness."""
