"""From trees of rollouts to training rows, minibatches of whole groups, and loss coefficients."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rail.config import UpdateConfig
from rail.errors import DataError
from rail.rollout.tree import Bools, Floats, Ints, Path, Tree

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """One trajectory in the update; all arrays have shape (T,).

    Attributes:
        task: Group that the row belongs to (position of its tree in the step).
        tokens: Prompt, actions and observations.
        trained: True where the token has a loss term; token 0 never has one.
        old_logprob: The ratio's denominator: the plain policy at T = 1 when the token was sampled.
        advantage: A of each token; one value per row except under `hard`.
        weight: w of each token, in numerator and denominator of the loss.
        importance: u of each token, in the numerator only.
    """

    task: int
    tokens: Ints
    trained: Bools
    old_logprob: Floats
    advantage: Doubles
    weight: Doubles
    importance: Doubles

    @property
    def live(self) -> bool:
        """Whether the row has a gradient without a KL term."""
        return bool((self.advantage[self.trained] != 0.0).any())


def training_rows(
    task: int,
    tree: Tree,
    rollouts: Sequence[int],
    advantages: Doubles,
    config: UpdateConfig,
    weights: Doubles | None = None,
) -> list[Row]:
    """Lay out the retained rollouts of one group; rows without a trained token are left out.

    Which tokens carry a loss term (`config.prefix_policy`):

    - `soft`: every sampled token of every copy, so a shared prefix is trained once per copy, each
      time with that copy's advantage (ARPO, arXiv 2507.19849);
    - `hard`: a shared turn once, with the mean advantage of the rollouts in `rollouts` that contain
      it;
    - `suffix`: the tokens that the rollout generated itself.

    Args:
        task: Position of the tree in the step.
        tree: The group.
        rollouts: Rollouts that take part, n of them.
        advantages: Their advantages, shape (n,).
        config: Reads `prefix_policy` and `importance_cap`.
        weights: Tree weights of the rollouts, shape (n,); None: all 1.

    Raises:
        DataError: Advantages or weights do not fit the rollouts, a first token would be trained, or
            a log-probability is not finite.
    """
    mass = np.ones(len(rollouts)) if weights is None else np.asarray(weights, dtype=np.float64)
    for name, values in (("advantages", advantages), ("weights", mass)):
        if np.shape(values) != (len(rollouts),) or not np.isfinite(values).all():
            raise DataError(
                f"task {tree.task.id}: got {name} {np.asarray(values).tolist()} for "
                f"{len(rollouts)} retained rollouts, expected one finite number each"
            )
    if not (mass > 0).all():
        raise DataError(f"task {tree.task.id}: got weights {mass.tolist()}, expected positive ones")
    owners = _owners(tree, rollouts) if config.prefix_policy == "hard" else {}
    rows = []
    for position, rollout in enumerate(rollouts):
        path = tree.path(rollout)
        advantage = np.full(path.tokens.shape, float(advantages[position]))
        weight = np.full(path.tokens.shape, float(mass[position]))
        trained = path.sampled.copy()
        if config.prefix_policy == "suffix":
            trained &= path.own
        for turn in tree.trajectories[rollout].turns if owners else ():
            here, shared = path.node == turn, owners[turn]
            trained[here] &= shared[0] == position
            weight[here] = mass[shared].mean()
            advantage[here] = (mass[shared] * advantages[shared]).mean() / mass[shared].mean()
        if trained[:1].any():
            raise DataError(
                f"task {tree.task.id}, rollout {rollout}: its first token is a sampled one, but a "
                "log-probability needs a token before it; give the task a prompt"
            )
        if not np.isfinite(path.logprob[trained]).all():
            raise DataError(
                f"task {tree.task.id}, rollout {rollout}: a trained token has a log-probability "
                "that is not finite; the sampler must record one for every token it draws"
            )
        if trained.any():
            importance = _importance(path, config.importance_cap)
            rows.append(
                Row(task, path.tokens, trained, path.logprob, advantage, weight, importance)
            )
    return rows


def _owners(tree: Tree, rollouts: Sequence[int]) -> dict[int, list[int]]:
    """Return, for each turn, the positions in `rollouts` that contain it, ascending."""
    owners: dict[int, list[int]] = {}
    for position, rollout in enumerate(rollouts):
        for turn in tree.trajectories[rollout].turns:
            owners.setdefault(turn, []).append(position)
    return owners


def _importance(path: Path, cap: float | None) -> Doubles:
    """Return min(plain / sampled probability, cap) per token, shape (T,); 1 without a cap."""
    if cap is None:
        return np.ones(path.tokens.shape)
    gap = path.logprob.astype(np.float64) - path.logprob_sampled
    return np.minimum(np.exp(np.minimum(gap, np.log(cap))), cap)


def split_minibatches(
    rows: Sequence[Row], count: int, all_live: bool, rng: np.random.Generator
) -> list[list[int]]:
    """Deal whole groups into `count` minibatches of about equal numbers of trained tokens.

    Groups with a gradient are dealt first, largest first, each to the minibatch with the fewest
    such tokens; groups without one follow and level the totals, since they only enter the
    denominator. Equal groups and the order of the minibatches are drawn from `rng`, always the same
    number of draws for the same groups. A minibatch without any group is not returned: with fewer
    groups than `count` there are fewer minibatches. `our choice`.

    Args:
        rows: All rows of the step.
        count: Minibatches wanted.
        all_live: Every group has a gradient (KL term).
        rng: The step's stream.

    Returns:
        Indices into `rows`, ascending within each minibatch.
    """
    tasks = sorted({row.task for row in rows})
    total = dict.fromkeys(tasks, 0)
    live = dict.fromkeys(tasks, all_live)
    for row in rows:
        total[row.task] += int(row.trained.sum())
        live[row.task] |= row.live
    drawn = [tasks[i] for i in rng.permutation(len(tasks))]
    order = sorted(drawn, key=lambda task: (not live[task], -total[task]))
    filled = np.zeros((count, 2), dtype=np.int64)  # columns: tokens of live groups, all tokens
    place = {}
    for task in order:
        place[task] = int(filled[:, 0 if live[task] else 1].argmin())
        filled[place[task]] += [total[task] * live[task], total[task]]
    dealt = [[i for i, r in enumerate(rows) if place[r.task] == k] for k in rng.permutation(count)]
    return [minibatch for minibatch in dealt if minibatch]


def equalise_tasks(rows: Sequence[Row], config: UpdateConfig) -> list[Row]:
    """Scale w so that every group has the same mass in the step, whose total mass stays as it was.

    A group's mass is its weighted tokens under `token_mean` and its weighted rows otherwise.
    """
    mass: dict[int, float] = {}
    for row in rows:
        mass[row.task] = mass.get(row.task, 0.0) + _mass(row, config)
    mean = sum(mass.values()) / max(len(mass), 1)
    return [replace(row, weight=row.weight * (mean / mass[row.task])) for row in rows]


def coefficients(rows: Sequence[Row], config: UpdateConfig) -> list[Doubles]:
    """Return what each token's loss term is multiplied by before the minibatch is summed up.

    Over ALL rows of the minibatch, rows without a gradient included, so dropping those from the
    forward pass leaves the loss as it is:

    - `token_mean`: w / sum of w over the trained tokens;
    - `sequence_mean`: w / (trained tokens of the row) / sum over rows of the row's mean w;
    - `token_sum_const`: w / (number of rows x `constant`) (Dr.GRPO, arXiv 2503.20783).

    Args:
        rows: Rows of one minibatch.
        config: Reads `normalise` and `constant`.

    Returns:
        One array of shape (T,) per row, 0 where not trained. Importance weights are not in it.
    """
    if config.normalise == "token_sum_const":
        divisor = len(rows) * config.constant
    else:
        divisor = sum(_mass(row, config) for row in rows)
    result = []
    for row in rows:
        length = row.trained.sum() if config.normalise == "sequence_mean" else 1.0
        result.append(np.where(row.trained, row.weight, 0.0) / (length * divisor))
    return result


def _mass(row: Row, config: UpdateConfig) -> float:
    """Return a row's share of the denominator: its summed w, or its mean w outside `token_mean`."""
    total = float(row.weight[row.trained].sum())
    return total if config.normalise == "token_mean" else total / int(row.trained.sum())
