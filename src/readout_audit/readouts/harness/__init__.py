"""The rules of published scoring scripts, written anew and exactly as they behave, quirks included."""
