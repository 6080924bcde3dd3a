import pytest

from rail.interventions import Decoding, InterventionSpace

SPACE = InterventionSpace.build(
    [12, 4, 8],
    {"EXPLOIT": Decoding(0.7), "MILD": Decoding(1.0), "AGGRESSIVE": Decoding(1.25)},
    cost_weight=0.005,
)


def test_cells_are_regime_major_with_ascending_budgets():
    pairs = [(SPACE[c].branches, SPACE[c].regime.name) for c in range(len(SPACE))]
    assert pairs == [
        (4, "EXPLOIT"), (8, "EXPLOIT"), (12, "EXPLOIT"),
        (4, "MILD"), (8, "MILD"), (12, "MILD"),
        (4, "AGGRESSIVE"), (8, "AGGRESSIVE"), (12, "AGGRESSIVE"),
    ]  # fmt: skip


def test_cell_is_the_inverse_of_indexing():
    for cell in range(9):
        intervention = SPACE[cell]
        assert SPACE.cell(intervention.branches, intervention.regime.name) == cell


@pytest.mark.parametrize("cell", [-1, 9])
def test_a_cell_outside_the_space_is_refused(cell: int):
    with pytest.raises(IndexError, match=rf"cell {cell} is not one of 0\.\.8"):
        SPACE[cell]


@pytest.mark.parametrize(("branches", "regime"), [(6, "MILD"), (4, "WILD")])
def test_a_pair_outside_the_space_is_refused(branches: int, regime: str):
    with pytest.raises(ValueError, match=regime):
        SPACE.cell(branches, regime)


def test_cost_is_lambda_times_the_branches():
    assert [SPACE.cost(m) for m in (4, 8, 12)] == pytest.approx([0.02, 0.04, 0.06])


def test_code_is_share_regime_and_their_product():
    assert SPACE.encode(SPACE.cell(4, "MILD")) == pytest.approx([1 / 3, 0, 1, 0, 0, 1 / 3, 0])
    assert SPACE.encode(SPACE.cell(12, "AGGRESSIVE")) == [1, 0, 0, 1, 0, 0, 1]


def test_codes_tell_all_cells_apart():
    assert len({tuple(SPACE.encode(cell)) for cell in range(9)}) == 9
