"""A record of what the product does, and the differences of the tree at hand from it."""
