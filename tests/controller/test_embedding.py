import numpy as np
import pytest

from rail.controller.embedding import TaskEmbedding

PROMPTS = [
    f"How many {thing} in table {table} cost more than {price}?"
    for thing in ("shirts", "boots", "hats")
    for table in ("spring", "autumn", "sales_2020")
    for price in (5, 90)
]


def test_rows_are_unit_vectors_of_the_asked_size():
    rows = TaskEmbedding.fit(PROMPTS, 16, seed=0).transform(PROMPTS)
    assert rows.shape == (18, 16)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)


def test_same_prompts_and_seed_give_the_same_bytes():
    first, second = (TaskEmbedding.fit(PROMPTS, 16, seed=3).transform(PROMPTS) for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_a_prompt_embeds_the_same_alone_and_among_others():
    embedding = TaskEmbedding.fit(PROMPTS, 16, seed=0)
    np.testing.assert_allclose(
        embedding.transform(PROMPTS[4:5])[0], embedding.transform(PROMPTS)[4], atol=1e-12
    )


def test_like_prompts_are_nearer_than_unlike_ones():
    embedding = TaskEmbedding.fit(PROMPTS, 16, seed=0)
    one, like, unlike = embedding.transform([
        "How many boots in table autumn cost more than 7?",
        "How many boots in table autumn cost more than 8?",
        "How many hats in table sales_2020 cost more than 90?",
    ])  # fmt: skip
    assert one @ like > 0.95 > one @ unlike + 0.2


def test_a_small_pool_is_padded_with_zeros():
    rows = TaskEmbedding.fit(PROMPTS[:3], 16, seed=0).transform(PROMPTS[:3])
    assert rows.shape == (3, 16)
    assert not rows[:, 3:].any()


@pytest.mark.parametrize("prompt", ["", "§§§§§"])
def test_a_prompt_that_shares_nothing_with_the_pool_is_zero(prompt: str):
    assert not TaskEmbedding.fit(PROMPTS, 16, seed=0).transform([prompt]).any()


def test_nothing_to_fit_on_is_refused():
    with pytest.raises(ValueError, match="at least one prompt"):
        TaskEmbedding.fit([], 16, seed=0)
