"""mPLUG-Owl2 in PyTorch, without code from a hub.

Written from a functional specification of the public model code X-PLUG/mPLUG-Owl at 0f3068f, docs/mplug-owl2.md,
which docstrings here cite by section. The parameter names are the original ones, so published checkpoints load as they are.
"""
