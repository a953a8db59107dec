"""The demo world: drawn scenes with known contents, and small models that look at them and err."""
