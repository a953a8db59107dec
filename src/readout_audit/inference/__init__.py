"""Asking a model every distinct question once, and keeping what it answered."""
