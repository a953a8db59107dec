"""A random mPLUG-Owl2 for tests: widths are multiples of 64, so that bitsandbytes can quantise it."""

import torch

from readout_audit.models.mplug_owl2.configuration import MplugOwl2Config
from readout_audit.models.mplug_owl2.model import MplugOwl2ForCausalLM


def tiny_settings() -> dict:
    """Return the content of a config.json; 4 queries, so 5 vectors per image."""
    return {
        "vocab_size": 96,
        "hidden_size": 128,
        "intermediate_size": 192,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "initializer_range": 0.1,
        "visual_config": {
            "visual_model": {
                "image_size": 28,
                "patch_size": 14,
                "num_channels": 3,
                "hidden_size": 64,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "intermediate_size": 128,
                "layer_norm_eps": 1e-6,
            },
            "visual_abstractor": {
                "num_learnable_queries": 4,
                "hidden_size": 64,
                "encoder_hidden_size": 64,
                "num_hidden_layers": 1,
                "num_attention_heads": 4,
                "intermediate_size": 128,
                "layer_norm_eps": 1e-6,
                "grid_size": 2,
            },
        },
    }


def tiny_model(seed: int = 0) -> MplugOwl2ForCausalLM:
    """Return the model with weights drawn from `seed`; the global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MplugOwl2ForCausalLM(MplugOwl2Config(**tiny_settings())).eval()


def tiny_images(count: int, seed: int = 1) -> torch.Tensor:
    """Return `[count, 3, 28, 28]`."""
    return torch.randn(count, 3, 28, 28, generator=torch.Generator().manual_seed(seed))
