"""The functions of PyTorch that rebuild a tensor from a pickle. PyTorch has no public names for them.

``tests/unit/test_torch_internals.py`` fails when the installed PyTorch differs from VERSION in these parts.
"""

import torch

VERSION = "2.13.0"
"""The version of PyTorch for which this module is written."""
REBUILD_TENSOR = torch._utils._rebuild_tensor_v2  # pyright: ignore[reportAttributeAccessIssue]
REBUILD_PARAMETER = torch._utils._rebuild_parameter  # pyright: ignore[reportAttributeAccessIssue]
