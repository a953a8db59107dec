"""readout-audit: how much of a yes/no hallucination score is the model, and how much is the readout?"""

__version__ = "0.1.0"
