"""DTensors on one rank: every form of call. tests/processes runs every placement on two ranks."""

import pytest
import torch
import torch.distributed as dist
from transform.golden_cases import differing

from hadamard_finder.transform import fwht, surface

dtensor = pytest.importorskip("torch.distributed.tensor")
if not dist.is_gloo_available():
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

PLACEMENTS = [
    dtensor.Shard(0), dtensor.Shard(1), dtensor.Shard(2), dtensor.Shard(-1),
    dtensor.Replicate(), dtensor.Partial("sum"), dtensor.Partial("max"),
]  # fmt: skip


@pytest.fixture(scope="module")
def mesh():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


CALLS = {
    "fwht": fwht,
    "matmul": lambda x: fwht(x, 0.3, algorithm="matmul"),
    "padded": lambda x: surface.hadamard_transform(x[..., :50], 0.3),
    "20N": surface.hadamard_transform_20N,
    "class": lambda x: surface.HadamardTransform40NFn.apply(x, 0.3),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("placement", PLACEMENTS, ids=str)
def test_the_call_equals_the_one_on_a_plain_tensor(mesh, placement, call):
    plain = torch.randn(3, 4, 64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    spread = dtensor.DTensor.from_local(plain.detach(), mesh, [placement]).requires_grad_()
    expected = CALLS[call](plain)
    y = CALLS[call](spread)
    assert isinstance(y, dtensor.DTensor)
    assert y.shape == expected.shape
    assert y.stride() == expected.stride()
    assert differing(y.full_tensor().detach(), expected.detach()) == 0
    y.full_tensor().pow(2).sum().backward()
    expected.pow(2).sum().backward()
    assert differing(spread.grad.full_tensor(), plain.grad) == 0


def test_which_placements_stay(mesh):
    x = torch.zeros(3, 4, 64)
    stay = [
        fwht(dtensor.DTensor.from_local(x, mesh, [placement])).placements[0] == placement
        for placement in PLACEMENTS
    ]
    assert stay == [True, True, False, False, True, True, False]


def test_widths_are_checked_on_the_whole(mesh):
    x = dtensor.DTensor.from_local(torch.zeros(3, 5), mesh, [dtensor.Shard(0)])
    with pytest.raises(ValueError, match="got 5"):
        fwht(x)


def test_inside_torch_compile(mesh):
    torch._dynamo.reset()
    x = dtensor.DTensor.from_local(torch.randn(3, 64), mesh, [dtensor.Shard(0)])
    run = torch.compile(lambda x: fwht(x, 0.3), fullgraph=True, backend="aot_eager")
    assert differing(run(x).full_tensor(), fwht(x, 0.3).full_tensor()) == 0
