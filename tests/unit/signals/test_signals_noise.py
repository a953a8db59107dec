"""The noise schedule against its published formula, and noise that only the question decides."""

import math

import numpy as np
import pytest
import torch

from readout_audit.models.base import ImageInputs
from readout_audit.signals.noise import (
    alpha_bars,
    diffused,
    diffused_inputs,
    generator,
    uniform_picture,
)

PINNED = [-0.8733309507369995, 1.7732194662094116]
"""First draws for uid 0…0 under seed 42, as numpy 2.4 gives them."""


def published_alpha_bar(step: int) -> float:
    """The product of 1 − β_s for s = 0 to `step`, term by term, as VCD's released code defines β."""
    product = 1.0
    for s in range(step + 1):
        x = -6.0 + 12.0 * s / 999
        beta = 1.0 / (1.0 + math.exp(-x)) * (0.5e-2 - 1e-5) + 1e-5
        product *= 1.0 - beta
    return product


@pytest.mark.parametrize("step", [0, 1, 250, 500, 999])
def test_alpha_bar_is_the_published_product(step: int) -> None:
    assert alpha_bars()[step] == pytest.approx(published_alpha_bar(step), rel=1e-12)


def test_alpha_bar_by_hand() -> None:
    # sigmoid(−6) = 1 / (1 + e⁶) = 1 / 404.4288 = 0.00247262; β₀ = 0.00247262·0.00499 + 0.00001 = 2.233839e-5
    assert len(alpha_bars()) == 1000
    assert 1.0 - alpha_bars()[0] == pytest.approx(2.233839e-5, rel=1e-6)
    assert all(later < earlier for earlier, later in zip(alpha_bars(), alpha_bars()[1:], strict=False))
    # β rises from 10⁻⁵ to 5·10⁻³ and is symmetric about 2.505·10⁻³, so Σβ = 2.505; each ln(1 − β) is between
    # −β − β² and −β, so ᾱ_999 is a little below e^−2.505 = 0.0817
    assert math.exp(-2.505 - 1000 * 0.005**2) < alpha_bars()[999] < math.exp(-2.505)


def test_mixture_by_hand() -> None:
    kept = published_alpha_bar(500)
    found = diffused(torch.tensor([2.0, -1.0]), torch.tensor([0.5, 3.0]), 500)
    expected = [
        math.sqrt(kept) * 2 + math.sqrt(1 - kept) * 0.5,
        -math.sqrt(kept) + math.sqrt(1 - kept) * 3,
    ]
    assert found.tolist() == pytest.approx(expected, rel=1e-6)


def inputs(**tensors: torch.Tensor) -> ImageInputs:
    return ImageInputs(tensors, 4)


def test_noise_depends_on_the_question_and_the_seed_alone() -> None:
    image = inputs(pixel_values=torch.zeros(1, 3, 8, 8), image_sizes=torch.tensor([[8, 8]]))
    one = diffused_inputs(image, "a" * 32, 500, 42, None)
    diffused_inputs(image, "b" * 32, 500, 42, None)
    again = diffused_inputs(image, "a" * 32, 500, 42, None)
    assert torch.equal(one.tensors["pixel_values"], again.tensors["pixel_values"])
    for uid, seed in (("b" * 32, 42), ("a" * 32, 43)):
        other = diffused_inputs(image, uid, 500, seed, None)
        assert not torch.equal(one.tensors["pixel_values"], other.tensors["pixel_values"])
    assert torch.equal(one.tensors["image_sizes"], image.tensors["image_sizes"])
    assert torch.equal(image.tensors["pixel_values"], torch.zeros(1, 3, 8, 8)), "the image itself is kept"


def test_noise_is_the_same_on_every_machine() -> None:
    # SHA-256 of the purpose and the uid seeds a PCG64; its first normal numbers are pinned.
    first = generator("vcd", 42, "0" * 32).standard_normal(2, dtype=np.float32)
    again = generator("vcd", 42, "0" * 32).standard_normal(2, dtype=np.float32)
    assert first.tolist() == again.tolist() == pytest.approx(PINNED, abs=1e-6)


def test_noise_has_the_variance_of_the_step() -> None:
    image = inputs(pixel_values=torch.zeros(1, 3, 100, 100))
    values = diffused_inputs(image, "c" * 32, 700, 1, None).tensors["pixel_values"]
    # 30,000 draws: the standard error of the variance is σ²·√(2/30000) = 0.8%
    assert float(values.var()) == pytest.approx(1 - published_alpha_bar(700), rel=0.04)
    assert abs(float(values.mean())) < 0.03


def test_frames_of_a_still_picture_share_their_noise() -> None:
    image = inputs(pixel_values=torch.zeros(6, 3 * 2 * 4), image_grid_thw=torch.tensor([[1, 2, 3]]))
    values = diffused_inputs(image, "d" * 32, 500, 1, 2).tensors["pixel_values"].view(6, 3, 2, 4)
    assert torch.equal(values[:, :, 0], values[:, :, 1])
    assert len(values[:, :, 0].unique()) == 6 * 3 * 4


def test_half_precision_pixels_stay_in_half_precision() -> None:
    image = inputs(pixel_values=torch.ones(1, 3, 4, 4, dtype=torch.bfloat16))
    assert diffused_inputs(image, "e" * 32, 10, 1, None).tensors["pixel_values"].dtype == torch.bfloat16


def test_uniform_picture() -> None:
    picture = np.asarray(uniform_picture("f" * 32, 64, 7))
    assert picture.shape == (64, 64, 3) and picture.dtype == np.uint8
    assert picture.min() == 0 and picture.max() == 255
    # mean 127.5, standard error 73.9/√12288 = 0.67
    assert abs(picture.mean() - 127.5) < 3
    assert np.array_equal(picture, np.asarray(uniform_picture("f" * 32, 64, 7)))
    assert not np.array_equal(picture, np.asarray(uniform_picture("f" * 32, 64, 8)))
