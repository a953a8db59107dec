"""Vision-language models behind one interface: see `base.py`; names stand in `registry.py`.

Importing this package switches the model hub off: inference reads local folders only, and must not
wait for, or depend on, a network that a compute node does not have.
"""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
