"""Memory and time of reading a few rows of attention, against the full matrices of eager attention.

Run it by itself: `python benchmarks/attention.py`. A decoder of random weights (LLaMA's form, 4 layers, 8 heads
of 32 channels) reads a sequence in one pass; each line is measured in processes of their own, on one core:

    plain    the pass as inference runs it (SDPA)
    rows     the same with the probe of `signals/attention.py`: the last position and six others, per layer and head
    eager    eager attention with `output_attentions`, as the published script ran it

Extra memory is the growth of the process's peak over the plain pass. Twice the length should double what `rows`
takes and quadruple what `eager` takes. The largest difference between both is printed too.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

LENGTHS = (512, 1024, 2048, 4096)
LAYERS, HEADS, WIDTH = 4, 8, 256
REPEATS = 3


def main() -> None:
    """Measure each length and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lengths", nargs="*", type=int, default=LENGTHS, help="sequence lengths")
    parser.add_argument("--child", choices=("plain", "rows", "eager"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(arguments.child, arguments.lengths[0])))
        return
    print(
        f"{'length':>7}{'rows MB':>10}{'eager MB':>10}{'plain s':>10}{'rows s':>10}{'eager s':>10}{'differ':>10}"
    )
    for length in arguments.lengths:
        plain, rows, eager = (child(kind, length) for kind in ("plain", "rows", "eager"))
        extra = [(found["peak"] - plain["peak"]) / 2**20 for found in (rows, eager)]
        seconds = "".join(f"{found['seconds']:10.3f}" for found in (plain, rows, eager))
        differ = max(abs(a - b) for a, b in zip(rows["sums"], eager["sums"], strict=True))
        print(f"{length:7d}{extra[0]:10.1f}{extra[1]:10.1f}{seconds}{differ:10.1e}", flush=True)


def child(kind: str, length: int) -> dict:
    """Measure in a fresh process, on one thread."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    # Without this glibc keeps freed blocks by habits of its own, which would blur peaks.
    environment = os.environ | dict.fromkeys(names, "1") | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    command = [sys.executable, __file__, "--child", kind, str(length)]
    found = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return json.loads(found.stdout.splitlines()[-1])


def measure(kind: str, length: int) -> dict:
    """Return peak bytes, the best time of a few passes, and attention summed over the first half, per layer and head."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=max(length, 4096),
        attn_implementation="eager" if kind == "eager" else "sdpa",
    )
    network = LlamaForCausalLM(config).eval()
    run(network, kind, torch.arange(16)[None])
    ids = torch.randint(256, (1, length))
    seconds, sums = [], []
    for _ in range(REPEATS):
        started = time.perf_counter()
        sums = run(network, kind, ids)
        seconds.append(time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"peak": peak, "seconds": min(seconds), "sums": sums}


def run(network: object, kind: str, ids: object) -> list[float]:
    """One pass; the sums are empty for the plain one."""
    import torch

    from readout_audit.signals.attention import AttentionProbe, Watched
    from readout_audit.signals.decoder import find_decoder

    length = ids.shape[1]
    half = torch.arange(length)[None] < length // 2
    with torch.inference_mode():
        if kind == "plain":
            network(input_ids=ids, logits_to_keep=1)
            return []
        if kind == "eager":
            output = network(input_ids=ids, logits_to_keep=1, output_attentions=True)
            sums = torch.stack([layer[0, :, -1, : length // 2].sum(-1) for layer in output.attentions])
            return sums.flatten().tolist()
        sets = [[[length - 1], [length - 4, length - 3], [length - 6], [length - 9, length - 8, length - 7]]]
        probe = AttentionProbe(find_decoder(network), Watched.of(sets, half, (1, 577)), (0, LAYERS))
        with probe.attached():
            network(input_ids=ids, logits_to_keep=1)
        return probe.seen().image[:, 0].flatten().tolist()


if __name__ == "__main__":
    main()
