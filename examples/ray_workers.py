"""A Ray task and Ray actors: the package in worker processes that somebody else starts.

Needs `pip install ray` beside torch and hadamard_finder (the extra `examples`).

What to expect: the task and both actors say that the start-up file had put the finder in place,
and their results equal the driver's bit for bit. Each actor gets its rank in RANK, as Ray Train
gives it; rank 0 alone warns that the stand-in took over. The task has no rank, so it warns, too.
"""

import logging
import sys

try:
    import ray
except ImportError as error:
    sys.exit(f"this example runs on Ray: pip install ray ({error})")
import torch


def rotate(x: torch.Tensor) -> tuple[torch.Tensor, str]:
    """The transform of x, and one line about the process it was made in."""
    # Nothing but a start-up file has imported it so far.
    started = "hadamard_finder.finder" in sys.modules
    warnings = []
    handler = logging.Handler()
    handler.emit = warnings.append
    logging.getLogger("hadamard_finder").addHandler(handler)

    from fast_hadamard_transform import __version__, hadamard_transform

    report = f"{__version__}, start-up file: {started}, warnings: {len(warnings)}"
    return hadamard_transform(x, scale=x.shape[-1] ** -0.5), report


@ray.remote
class Worker:
    def rotate(self, x: torch.Tensor) -> tuple[torch.Tensor, str]:
        return rotate(x)


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(16, 128).bfloat16()
    ray.init(address="local", num_cpus=2, include_dashboard=False)
    jobs = {"task": ray.remote(rotate).remote(x)}
    for rank in range(2):
        settings = {"env_vars": {"RANK": str(rank)}}
        jobs[f"actor {rank}"] = Worker.options(runtime_env=settings).remote().rotate.remote(x)
    results = {name: ray.get(job) for name, job in jobs.items()}
    ray.shutdown()

    wanted, report = rotate(x)
    print(f"driver:  {report}")
    for name, (y, report) in results.items():
        assert torch.equal(y, wanted)
        print(f"{name}: {report}; equals the driver")


if __name__ == "__main__":
    main()
