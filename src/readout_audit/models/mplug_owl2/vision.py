"""The vision encoder: a CLIP-like transformer with one fused projection (docs/mplug-owl2.md §2)."""

import torch
from torch import Tensor, nn
from transformers.activations import ACT2FN

from readout_audit.models.mplug_owl2.attention import MultiHeadAttention
from readout_audit.models.mplug_owl2.configuration import MplugOwl2Config


class VisionEmbeddings(nn.Module):
    """Patches row by row, the class token in front, learned positions, and a LayerNorm over the sum (§2, 1 to 3)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        vision = config.vision
        self.cls_token = nn.Parameter(torch.empty(1, 1, vision.hidden_size))
        self.position_embedding = nn.Parameter(torch.empty(1, vision.positions, vision.hidden_size))
        self.patch_embed = nn.Conv2d(
            vision.num_channels,
            vision.hidden_size,
            kernel_size=vision.patch_size,
            stride=vision.patch_size,
            bias=False,
        )
        self.pre_layernorm = nn.LayerNorm(vision.hidden_size, eps=vision.layer_norm_eps)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Map `[images, channels, size, size]` to `[images, 1 + patches, width]`."""
        patches = self.patch_embed(pixel_values).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(patches.shape[0], -1, -1), patches], dim=1)
        normed: Tensor = self.pre_layernorm(tokens + self.position_embedding)
        return normed


class VisionAttention(MultiHeadAttention):
    """Full self-attention; the output channels of the projection go head by head, each head as q, k, v (§2, 4)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        vision = config.vision
        super().__init__(config, vision.hidden_size // vision.num_attention_heads, is_causal=False)
        self.query_key_value = nn.Linear(vision.hidden_size, 3 * vision.hidden_size)
        self.dense = nn.Linear(vision.hidden_size, vision.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        """Map `[images, positions, width]` to the same shape, without the residual."""
        fused: Tensor = self.query_key_value(x)
        query, key, value = fused.view(*x.shape[:-1], -1, 3, self.head_dim).transpose(1, 2).unbind(dim=3)
        context, _ = self.attend(query, key, value)
        projected: Tensor = self.dense(context)
        return projected


class VisionMLP(nn.Module):
    """fc1, x·sigmoid(1.702·x), fc2 (§2, 4)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        vision = config.vision
        self.fc1 = nn.Linear(vision.hidden_size, vision.intermediate_size)
        self.activation = ACT2FN["quick_gelu"]
        self.fc2 = nn.Linear(vision.intermediate_size, vision.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        """Map `[…, width]` to the same shape."""
        y: Tensor = self.fc2(self.activation(self.fc1(x)))
        return y


class VisionLayer(nn.Module):
    """A pre-norm layer; `post_attention_layernorm` is, despite its name, the norm before the MLP (§2, 4)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        vision = config.vision
        self.input_layernorm = nn.LayerNorm(vision.hidden_size, eps=vision.layer_norm_eps)
        self.self_attn = VisionAttention(config)
        self.post_attention_layernorm = nn.LayerNorm(vision.hidden_size, eps=vision.layer_norm_eps)
        self.mlp = VisionMLP(config)

    def forward(self, x: Tensor) -> Tensor:
        """Map `[images, positions, width]` to the same shape."""
        x = x + self.self_attn(self.input_layernorm(x))
        y: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return y


class VisionEncoder(nn.Module):
    """The stack of layers."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        self.layers = nn.ModuleList(VisionLayer(config) for _ in range(config.vision.num_hidden_layers))

    def forward(self, x: Tensor) -> Tensor:
        """Map `[images, positions, width]` to the same shape."""
        for layer in self.layers:
            x = layer(x)
        return x


class VisionModel(nn.Module):
    """Embeddings, layers, and a LayerNorm on all positions, class token included (§2, 5)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        self.embeddings = VisionEmbeddings(config)
        self.encoder = VisionEncoder(config)
        self.post_layernorm = nn.LayerNorm(config.vision.hidden_size, eps=config.vision.layer_norm_eps)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Map `[images, channels, size, size]` to `[images, 1 + patches, width]`."""
        normed: Tensor = self.post_layernorm(self.encoder(self.embeddings(pixel_values)))
        return normed
