"""QuaRot on one linear layer: rotate its input and its weight, then quantise both to 4 bits.

With an orthogonal H, (x H)(W H)^T = x W^T: the layer computes the same, but outliers in x are
spread over all channels, so that 4 bits represent it better. Needs torch and hadamard_finder only.

What to expect: the two layers agree to about 5e-7 before quantisation; the error of the quantised
layer falls from about 25 % to about 18 %. One width is a power of two; the other is 20 * 64, for
which the stand-in's interface has `hadamard_transform_20N`.
"""

from collections.abc import Callable

import torch
from fast_hadamard_transform import hadamard_transform
from fast_hadamard_transform.fast_hadamard_transform_interface import hadamard_transform_20N

Transform = Callable[..., torch.Tensor]


def four_bits(x: torch.Tensor) -> torch.Tensor:
    """Symmetric, one scale a row: a token of the input, an output channel of the weight."""
    scale = x.abs().amax(-1, keepdim=True) / 7
    return (x / scale).round().clamp(-8, 7) * scale


def relative_error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return ((found - wanted).norm() / wanted.norm()).item()


def show(width: int, transform: Transform) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(width, 512, bias=False)
    x = torch.randn(64, width)
    x[:, ::97] *= 40  # a few channels with outliers, as language models have them
    weight = layer.weight.detach()
    wanted = x @ weight.T

    scale = width**-0.5
    rotated_x, rotated_weight = transform(x, scale=scale), transform(weight, scale=scale)
    same = relative_error(rotated_x @ rotated_weight.T, wanted)
    plain = relative_error(four_bits(x) @ four_bits(weight).T, wanted)
    rotated = relative_error(four_bits(rotated_x) @ four_bits(rotated_weight).T, wanted)

    print(
        f"width {width}: rotated and exact differ by {same:.0e}; "
        f"error with 4 bits: {plain:.1%}, rotated {rotated:.1%}"
    )
    assert same < 1e-5
    assert rotated < plain


if __name__ == "__main__":
    show(1024, hadamard_transform)
    show(20 * 64, hadamard_transform_20N)
