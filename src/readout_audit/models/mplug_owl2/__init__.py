"""mPLUG-Owl2 in PyTorch, without code from a hub.

What it computes is said in docs/mplug-owl2.md, which docstrings here cite by section. The parameter names are the original
ones, so published checkpoints load as they are.
"""
