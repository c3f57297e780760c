"""What `mendq doctor` looks at; what may not be read is unknown, never a reason to stop."""
