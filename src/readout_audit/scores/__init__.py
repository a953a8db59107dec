"""Counts, rates and intervals of yes/no answers."""
