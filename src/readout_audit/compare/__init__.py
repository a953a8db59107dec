"""Two runs, question by question."""
