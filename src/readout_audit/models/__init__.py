"""Vision-language models behind one interface: see `base.py`; names stand in `registry.py`.

Importing this package switches the model hub off: inference reads local folders only, and must not
wait for, or depend on, a network that a compute node does not have. That it was switched off here, and not
by the user, is noted for `fetch.model`, which is asked for the network by name.
"""

import os

if not os.environ.get("HF_HUB_OFFLINE"):
    os.environ["READOUT_AUDIT_SWITCHED_HUB_OFF"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
