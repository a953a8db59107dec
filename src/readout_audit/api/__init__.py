"""Asking a model behind an OpenAI-compatible server, over HTTP, and keeping what it answered."""
