"""As much of torch as the stand-in touches while it is imported, and no more.

With it the import machinery can be tested on Pythons for which there is no torch here, and without
paying for torch's own import in every child process.
"""

from torch import autograd as autograd

__version__ = "0.0.0+stub"


class Tensor:
    pass


# Types of annotations, which tools like beartype look up while a module is imported.
class dtype:  # noqa: N801
    pass


class device:  # noqa: N801
    pass
