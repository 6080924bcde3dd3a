"""Adjusted p-values by hand."""

import math

import pytest

from rail.stats.multiplicity import benjamini_hochberg, holm


def test_holm_steps_down() -> None:
    # .01 x 3, then .03 x 2 = .06, then max(.06, .04 x 1)
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_benjamini_hochberg_steps_up() -> None:
    # .01 x 4; .03 x 4/2 = .06 lowered to .04 x 4/3 = .0533; .2
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.2]) == pytest.approx(
        [0.04, 0.16 / 3, 0.16 / 3, 0.2]
    )
    assert benjamini_hochberg([]) == []


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_untested_claims_keep_the_family_size(adjust: type) -> None:
    found = adjust([0.01, float("nan"), float("nan")])
    assert found[0] == pytest.approx(0.03)
    assert math.isnan(found[1])
    assert math.isnan(found[2])
