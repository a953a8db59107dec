"""The visual abstractor: learned queries that attend to themselves and to the image (docs/mplug-owl2.md §3)."""

import torch
from torch import Tensor, nn

from readout_audit.models.mplug_owl2.attention import MultiHeadAttention
from readout_audit.models.mplug_owl2.configuration import MplugOwl2Config

LIBRARY_LAYER_NORM_EPS = 1e-5
"""norm1, normk and norm2 have this eps whatever the configuration says; only ffn_ln obeys it (§3.3)."""


def sinusoid(positions: Tensor, channels: int) -> Tensor:
    """Return `[len(positions), channels]` in float64: all sines, then all cosines (§3.4)."""
    half = channels // 2
    frequency = 10000.0 ** (-torch.arange(half, dtype=torch.float64, device=positions.device) / half)
    angle = positions.to(torch.float64)[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=1)


def query_positions(queries: int, channels: int, device: torch.device | None = None) -> Tensor:
    """Return the queries' table `[queries, channels]`, float64 (§3.4)."""
    return sinusoid(torch.arange(queries, device=device), channels)


def image_positions(grid: int, channels: int, device: torch.device | None = None) -> Tensor:
    """Return the image's table `[1 + grid², channels]`, float64: the class token's row is zero (§3.4).

    The first half of the channels is the column, the last half the row; the grid goes row by row, as the patches.
    """
    line = sinusoid(torch.arange(grid, device=device), channels // 2)
    column, row = line.repeat(grid, 1), line.repeat_interleave(grid, dim=0)
    return torch.cat([line.new_zeros(1, channels), torch.cat([column, row], dim=1)])


class AbstractorAttention(MultiHeadAttention):
    """Queries against the queries and the image; positions reach queries and keys, never values (§3.2, 2 to 4)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        settings = config.abstractor
        super().__init__(config, settings.hidden_size // settings.num_attention_heads, is_causal=False)
        self.query = nn.Linear(settings.hidden_size, settings.hidden_size)
        self.key = nn.Linear(settings.encoder_hidden_size, settings.hidden_size)
        self.value = nn.Linear(settings.encoder_hidden_size, settings.hidden_size)

    def forward(self, queries: Tensor, image: Tensor, query_table: Tensor, image_table: Tensor) -> Tensor:
        """Return the context `[images, queries, width]` of normalised queries and normalised image vectors."""
        sequence = torch.cat([queries, image], dim=1)
        table = torch.cat([query_table, image_table])
        query = self.split(self.query(queries + query_table))
        key, value = self.split(self.key(sequence + table)), self.split(self.value(sequence))
        context, _ = self.attend(query, key, value)
        return context


class AbstractorMLP(nn.Module):
    """Gated, with a LayerNorm on the inner width: w2(ffn_ln(SiLU(w1 z) · (w3 z))) (§3.3)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        settings = config.abstractor
        self.w1 = nn.Linear(settings.hidden_size, settings.intermediate_size)
        self.w2 = nn.Linear(settings.intermediate_size, settings.hidden_size)
        self.w3 = nn.Linear(settings.hidden_size, settings.intermediate_size)
        self.ffn_ln = nn.LayerNorm(settings.intermediate_size, eps=settings.layer_norm_eps)

    def forward(self, z: Tensor) -> Tensor:
        """Map `[…, width]` to the same shape."""
        y: Tensor = self.w2(self.ffn_ln(nn.functional.silu(self.w1(z)) * self.w3(z)))
        return y


class AbstractorOutput(nn.Module):
    """The output projection with its residual, and the MLP with its own (§3.2, 5 and 6)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        width = config.abstractor.hidden_size
        self.out_proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width, eps=LIBRARY_LAYER_NORM_EPS)
        self.mlp = AbstractorMLP(config)

    def forward(self, context: Tensor, residual: Tensor) -> Tensor:
        """Return the layer's output `[images, queries, width]`."""
        y = residual + self.out_proj(context)
        z: Tensor = y + self.mlp(self.norm2(y))
        return z


class AbstractorCrossAttention(nn.Module):
    """One layer. The residual is the *normalised* query, not the state that came in (§3.2, 5)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        settings = config.abstractor
        self.norm1 = nn.LayerNorm(settings.hidden_size, eps=LIBRARY_LAYER_NORM_EPS)
        self.normk = nn.LayerNorm(settings.encoder_hidden_size, eps=LIBRARY_LAYER_NORM_EPS)
        self.attention = AbstractorAttention(config)
        self.output = AbstractorOutput(config)

    def forward(self, x: Tensor, image: Tensor, query_table: Tensor, image_table: Tensor) -> Tensor:
        """Map the queries `[images, queries, width]` to the same shape."""
        queries = self.norm1(x)
        context = self.attention(queries, self.normk(image), query_table, image_table)
        y: Tensor = self.output(context, queries)
        return y


class AbstractorLayer(nn.Module):
    """Holds the layer under its original name."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        self.crossattention = AbstractorCrossAttention(config)

    def forward(self, x: Tensor, image: Tensor, query_table: Tensor, image_table: Tensor) -> Tensor:
        """Map the queries `[images, queries, width]` to the same shape."""
        y: Tensor = self.crossattention(x, image, query_table, image_table)
        return y


class AbstractorEncoder(nn.Module):
    """The stack of layers; every layer sees the same image vectors (§3.2)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        self.settings = config.abstractor
        self.layers = nn.ModuleList(AbstractorLayer(config) for _ in range(self.settings.num_hidden_layers))

    def forward(self, x: Tensor, image: Tensor) -> Tensor:
        """Map the queries `[images, queries, width]` to the same shape."""
        # Computed when used, not kept as buffers: a buffer that the checkpoint lacks comes back from
        # `from_pretrained` as uninitialised memory (§9.3).
        width = self.settings.hidden_size
        query_table = query_positions(self.settings.num_learnable_queries, width, x.device).to(x.dtype)
        image_table = image_positions(self.settings.grid_size, width, x.device).to(x.dtype)
        for layer in self.layers:
            x = layer(x, image, query_table, image_table)
        return x


class VisualAbstractor(nn.Module):
    """Learned queries, layers, a projection to the language width, and the end-of-image vector (§3.1, §3.5)."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__()
        settings = config.abstractor
        self.query_embeds = nn.Parameter(torch.empty(1, settings.num_learnable_queries, settings.hidden_size))
        self.encoder = AbstractorEncoder(config)
        self.visual_fc = nn.Linear(settings.hidden_size, config.hidden_size)
        self.vit_eos = nn.Parameter(torch.empty(1, 1, config.hidden_size))

    def forward(self, image: Tensor) -> Tensor:
        """Map `[images, 1 + patches, width]` to `[images, queries + 1, language width]`."""
        images = image.shape[0]
        queries = self.encoder(self.query_embeds.expand(images, -1, -1), image)
        return torch.cat([self.visual_fc(queries), self.vit_eos.expand(images, -1, -1)], dim=1)
