"""Two faulty consumers to learn from. docs/consumers.md explains what is wrong with each."""
