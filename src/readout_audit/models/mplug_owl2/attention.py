"""One call for the three kinds of attention in the model, through the attention interface of transformers."""

from torch import Tensor, nn
from transformers import PreTrainedConfig
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import eager_attention_forward


class MultiHeadAttention(nn.Module):
    """The part of an attention module that has no weights: scores, softmax and weighted sum.

    Args:
        config: names the attention implementation (`sdpa` or `eager`).
        head_dim: channels per head; scores are scaled by head_dim^-0.5.
        is_causal: whether position i sees only positions up to i.
    """

    num_key_value_groups = 1

    def __init__(self, config: PreTrainedConfig, head_dim: int, is_causal: bool) -> None:
        super().__init__()
        self.config = config
        self.head_dim = head_dim
        self.scaling = head_dim**-0.5
        self.is_causal = is_causal

    def split(self, x: Tensor) -> Tensor:
        """Return `[batch, positions, channels]` as `[batch, heads, positions, head_dim]`, heads being contiguous."""
        return x.view(*x.shape[:-1], -1, self.head_dim).transpose(1, 2)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Attend over `[batch, heads, positions, head_dim]` tensors.

        Returns:
            The context `[batch, queries, channels]`, and the weights `[batch, heads, queries, keys]` where the
            implementation gives them (`eager` only).
        """
        interface = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention_forward
        )
        context, weights = interface(self, query, key, value, mask, dropout=0.0, scaling=self.scaling)
        joined: Tensor = context.flatten(2)
        return joined, weights
