"""Ways to read yes or no from one answer: pure functions of the record table, registered by name."""
