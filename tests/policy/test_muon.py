import pytest
import torch

from rail.policy.muon import Muon, orthogonalise


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(8, 8), (16, 8), (8, 16)])
def test_it_takes_the_steps_of_the_library_up_to_bfloat16(shape: tuple[int, int]) -> None:
    ours, theirs = (torch.nn.Parameter(random(*shape)) for _ in range(2))
    start = ours.detach().clone()
    optimizer = Muon([ours], lr=0.02)
    reference = torch.optim.Muon([theirs], lr=0.02, weight_decay=0.0)
    for step in range(1, 4):
        ours.grad = random(*shape, seed=step)
        theirs.grad = ours.grad.clone()
        optimizer.step()
        reference.step()
    moved = (ours - start).abs().max()
    assert (ours - theirs).abs().max() < 0.02 * moved  # bfloat16 keeps 8 bits


def test_singular_values_become_nearly_one_and_directions_stay() -> None:
    matrices = random(3, 6, 10)
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    inner = u.transpose(1, 2) @ orthogonalise(matrices) @ v.transpose(1, 2)
    diagonal = torch.diagonal(inner, dim1=1, dim2=2)
    assert torch.allclose(inner, torch.diag_embed(diagonal), atol=1e-4)
    assert ((diagonal > 0.5) & (diagonal < 1.5)).all()


def test_a_vector_is_refused() -> None:
    with pytest.raises(ValueError, match="takes matrices"):
        Muon([torch.nn.Parameter(torch.ones(3))], lr=0.1)
