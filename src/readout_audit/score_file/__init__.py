"""Audit answers that were made elsewhere: read the file, pair it with its release, score it every way."""
