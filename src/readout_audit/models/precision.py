"""Number formats of a model's weights: how they are asked for, and a check of what was loaded.

`fp32, bf16, fp16` hold every floating-point parameter in that dtype. `int8` and `nf4` quantise the
language model's linear layers with bitsandbytes; the rest is held, and computed, in `compute_dtype`.
"""

import logging
from collections import Counter
from typing import Any

import torch
from torch import nn

from readout_audit.errors import AuditError

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
COMPUTE_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""Names of `compute_dtype`, as torch has them."""

DEVICES = ("auto", "cpu", "cuda")

QUANTISED = ("int8", "nf4")
PRECISIONS = (*DTYPES, *QUANTISED)


def compute_dtype(precision: str, declared: str | None) -> torch.dtype:
    """Return the dtype that arithmetic runs in.

    Args:
        precision: one of `PRECISIONS`.
        declared: the settings' `compute_dtype`, a key of `COMPUTE_DTYPES`; required for int8 and nf4,
            else null or the precision's own dtype.
    """
    if declared is not None and declared not in COMPUTE_DTYPES:
        raise AuditError(f"compute_dtype {declared!r} is not one of {', '.join(COMPUTE_DTYPES)}.")
    if precision not in PRECISIONS:
        raise AuditError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}.")
    if precision in DTYPES:
        if declared is not None and COMPUTE_DTYPES[declared] is not DTYPES[precision]:
            raise AuditError(f"precision {precision} computes in its own dtype, not in {declared}.")
        return DTYPES[precision]
    if declared is None:
        raise AuditError(f"precision {precision} needs a compute_dtype: {', '.join(COMPUTE_DTYPES)}.")
    return COMPUTE_DTYPES[declared]


def dtype_name(dtype: torch.dtype) -> str:
    """Return `fp32`, `bf16` or `fp16`."""
    return next(name for name, known in DTYPES.items() if known is dtype)


def choose_device(wanted: str) -> torch.device:
    """Return the device for `auto`, `cpu` or `cuda`."""
    if wanted not in DEVICES:
        raise AuditError(f"device {wanted!r} is not one of {', '.join(DEVICES)}.")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise AuditError("device cuda was asked for, but no usable GPU is there; use --device cpu.")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)


def check_device(precision: str, dtype: torch.dtype, device: torch.device) -> None:
    """Refuse bf16 on a GPU that only emulates it (before Ampere): it would be slow and not what was meant."""
    if dtype is torch.bfloat16 and device.type == "cuda":
        capability = torch.cuda.get_device_capability(device)
        if capability < (8, 0):
            name = torch.cuda.get_device_name(device)
            raise AuditError(
                f"{name} (compute capability {capability[0]}.{capability[1]}) has no bf16; "
                f"use precision fp16, or compute_dtype float16 with {precision}."
            )


def load_arguments(precision: str, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Return the keyword arguments of `from_pretrained` that fix the number format."""
    # Straight onto a GPU, so that the weights need not fit into main memory first.
    placed = {"device_map": {"": str(device)}} if device.type == "cuda" or precision in QUANTISED else {}
    if precision in DTYPES:
        return {"dtype": dtype, **placed}
    # Where the CPU has bf16 instructions bitsandbytes looks for a kernel to download, and says that it cannot.
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
    from transformers import BitsAndBytesConfig

    if precision == "int8":
        # It says once per matrix product that activations are cast to float16, which is how int8 works.
        logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
        quantisation = BitsAndBytesConfig(load_in_8bit=True)
    else:
        quantisation = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
        )
    return {"dtype": dtype, "quantization_config": quantisation, **placed}


def honour_compute_dtype(network: nn.Module, dtype: torch.dtype) -> None:
    """Keep bitsandbytes from computing 4-bit layers in bf16 on CPUs that have it, whatever was asked for.

    Its shortcut for such CPUs ignores the compute dtype; without it the layer is dequantised and multiplied
    in the dtype of the settings. Must run before the first forward pass, which repacks the weights.
    """
    if dtype is torch.bfloat16:
        return
    layer: Any
    for layer in network.modules():
        if hasattr(layer, "support_avx512bf16_for_cpu"):
            layer.support_avx512bf16_for_cpu = False


def found_dtypes(network: nn.Module) -> dict[str, int]:
    """Return how many parameters (tensors, not elements) have each dtype."""
    counts = Counter(str(parameter.dtype).removeprefix("torch.") for parameter in network.parameters())
    return dict(sorted(counts.items()))


def check_loaded(
    network: nn.Module, precision: str, dtype: torch.dtype, device: torch.device, what: str
) -> None:
    """Refuse a model whose parameters are not all on the device and in the format that was asked for."""
    for name, parameter in network.named_parameters():
        if parameter.is_meta:
            raise AuditError(f"{what}: parameter {name} was not loaded (it is on the meta device).")
        if parameter.device.type != device.type:
            raise AuditError(
                f"{what}: parameter {name} was offloaded to {parameter.device}; the model does not fit on {device}."
            )
    allowed = {dtype} if precision in DTYPES else {dtype, torch.int8, torch.uint8}
    # Parameters that a model class itself keeps in float32 (InstructBLIP's query tokens) are as asked.
    kept = tuple(getattr(network, "_keep_in_fp32_modules", None) or ())
    for name, parameter in network.named_parameters():
        if any(part in kept for part in name.split(".")) and parameter.dtype is torch.float32:
            continue
        if parameter.dtype not in allowed:
            raise AuditError(
                f"{what}: precision {precision} was asked for, but parameter {name} is {parameter.dtype}."
            )
    quantised = {torch.int8, torch.uint8} & {parameter.dtype for parameter in network.parameters()}
    if precision in QUANTISED and not quantised:
        raise AuditError(f"{what}: precision {precision} was asked for, but no parameter is quantised.")
