"""The kernel's walk over a tree against attention over sequences laid out in full."""

import numpy as np
import pytest
import torch

from rail.errors import PolicyError
from rail.policy.kernel.tree import walk
from rail.policy.prefix_tree import layout, prefix_tree
from rail.policy.tree_attention import attend
from tests.policy.models import needs_kernel

SEQUENCES = [
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    [1, 2, 3, 4, 5, 6, 7, 8, 11],
    [1, 2, 3],
    [1, 2, 3, 12, 13, 14],
    [1, 2, 3, 12, 13, 14],
    [20, 21],
    list(range(30, 75)),
]


@needs_kernel
@pytest.mark.parametrize(("heads", "groups", "size"), [(4, 4, 32), (4, 2, 16), (2, 1, 48)])
def test_values_and_gradients_equal_those_of_full_sequences(
    heads: int, groups: int, size: int
) -> None:
    tree = prefix_tree([np.array(s, dtype=np.int64) for s in SEQUENCES])
    nodes = len(tree.tokens)
    assert nodes == 61  # of 81 tokens
    rng = torch.Generator().manual_seed(1)
    shapes = [(1, n, nodes, size) for n in (heads, groups, groups)]
    weight = torch.randn(1, nodes, heads, size, generator=rng)
    inputs = [torch.randn(shape, generator=rng) for shape in shapes]
    found = []
    for native in (False, True):
        q, k, v = given = [x.clone().requires_grad_() for x in inputs]
        tree_layout = layout(tree, torch.device("cpu"), native)
        out, _ = attend(torch.nn.Identity(), q, k, v, None, tree=tree_layout, scaling=0.3)
        (out * weight).sum().backward()
        found.append([out.detach(), *(x.grad for x in given)])
    for expected, got in zip(*found, strict=True):
        assert expected is not None
        assert got is not None
        assert expected.abs().max() > 0.1
        torch.testing.assert_close(got, expected, atol=5e-6, rtol=1e-5)


def test_heads_that_the_kernel_cannot_read_are_refused() -> None:
    states = torch.zeros(1, 2, 3, 8)
    positions = torch.arange(3, dtype=torch.int32)
    with pytest.raises(PolicyError, match=r"a multiple of 16, got torch\.float32 of 8"):
        walk(states, states, states, positions, 3, 1.0)
