"""The loop: allocate, roll out, branch, update, learn, write. Every method takes this path."""

import json
import logging
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rail import atomic, checkpoint
from rail.checkpoint import StateFolder
from rail.errors import CheckpointError
from rail.fingerprint import fingerprint
from rail.provenance import digest_of, versions
from rail.runs import RunConfig
from rail.traces.schema import TABLES
from rail.traces.store import write_table
from rail.trainer import Trainer

LOGGER = logging.getLogger(__name__)
PROMOTION = "promotion.pt"


def key_of(run: RunConfig, policy: Path) -> str:
    """Return the digest of code, configuration and initial policy that a run's state belongs to."""
    code = fingerprint("rail.train", f"rail.methods.{run.module}", f"rail.envs.{run.benchmark}")
    start = digest_of(policy / "model.safetensors")
    return digest_of(json.dumps([code, run.model_dump(mode="json"), start], sort_keys=True))


def train(run: RunConfig, policy: Path, state: Path, out: Path, reads: Path | None = None) -> None:
    """Train one run to its end and write its tables, final policy and run.json.

    A run that was killed goes on from its last checkpoint; what it writes is byte for byte what an
    undisturbed run would have written (the clock's table apart).

    Args:
        run: Everything the run reads.
        policy: Folder of the warm start.
        state: Folder of the state in progress; one process at a time.
        out: Folder of the results.
        reads: Results of the run that the method follows, when its configuration names one.

    Raises:
        LockError: If another process trains in `state`.
    """
    with checkpoint.locked(state), _terminating() as asked_to_stop:
        key = key_of(run, policy)
        folder = StateFolder(state, key)
        trainer = Trainer(run, policy, reads)
        step = _restore(trainer, folder, reads)
        progress = _Progress(state / "progress.jsonl", run.train.steps, step)
        while step < run.train.steps:
            for table, rows in trainer.step(step).items():
                folder.add(table, rows)
            step += 1
            promoted = trainer.method.promoted_step == step
            if promoted:  # before the checkpoint: a run that goes on from it has the file
                checkpoint.save(state / PROMOTION, {"step": step, **trainer.state_dict()})
            if promoted or step % run.train.checkpoint_every == 0 or asked_to_stop:
                folder.save(step, trainer.state_dict())
            progress.line(step, trainer.headline)
            if asked_to_stop:
                LOGGER.warning("stopped by a signal after step %d; run again to go on", step)
                raise SystemExit(143)
        record = {"key": key, "warm_start": digest_of(policy / "model.safetensors")}
        _write(trainer, folder, run, record, state, out)


def _restore(trainer: Trainer, folder: StateFolder, reads: Path | None) -> int:
    saved = folder.resume()
    if saved is not None:
        trainer.load_state_dict(saved)
        LOGGER.info("resumed at step %d", saved["step"])
        return int(saved["step"])
    if not trainer.method.shares_shadow or reads is None:
        return 0
    shared = checkpoint.load(reads / PROMOTION)
    trainer.adopt(shared)
    step = int(shared["step"])
    for table, rows in trainer.shared_rows(reads, step).items():
        folder.add(table, rows)
    LOGGER.info("starts from the promotion checkpoint of %s at step %d", reads, step)
    return step


def _write(
    trainer: Trainer,
    folder: StateFolder,
    run: RunConfig,
    record: dict[str, Any],
    state: Path,
    out: Path,
) -> None:
    for table, schema in TABLES.items():
        write_table(out / f"{table}.parquet", folder.rows(table), schema)
    trainer.save_policy(out / "policy")
    if (state / PROMOTION).exists():
        content = (state / PROMOTION).read_bytes()
        atomic.write_bytes(out / PROMOTION, content)
    elif trainer.method.promoted_step > 0:
        raise CheckpointError(f"{state / PROMOTION} is missing: delete {state} and run again")
    record |= {
        "run": run.model_dump(mode="json"),
        "panels": trainer.panel_hashes,
        "backend": trainer.actor.backend,
        "promoted_by": trainer.method.promoted_by,
        "promoted_step": trainer.method.promoted_step,
        "totals": trainer.totals(),
    }
    atomic.write_json(out / "run.json", {**record, **versions()})


class _Progress:
    """One line per step to the log, and to an append-only file that `rail status` reads."""

    def __init__(self, path: Path, steps: int, start: int) -> None:
        self._path, self._steps, self._first = path, steps, start
        self._begun = time.time()

    def line(self, step: int, message: str) -> None:
        seconds = time.time() - self._begun
        eta = seconds / (step - self._first) * (self._steps - step)
        LOGGER.info("step %d/%d  %s  eta %.0f s", step, self._steps, message, eta)
        entry = {
            "time": time.time(),
            "step": step,
            "steps": self._steps,
            "seconds": round(seconds, 3),
            "eta": round(eta, 1),
            "message": message,
        }
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


@contextmanager
def _terminating() -> Iterator[list[int]]:
    """Yield a list that is filled once SIGTERM has come; the step under way is finished first."""
    signals: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    try:
        yield signals
    finally:
        signal.signal(signal.SIGTERM, before)
