import json
import os
from pathlib import Path

import pytest

from rail.config import Config
from rail.runs import load_config
from rail.status import last_progress, statuses

ROOT = Path(__file__).parents[1]
NOW = 10_000.0


@pytest.fixture
def config(tmp_path: Path) -> Config:
    smoke = load_config([ROOT / "config/default.yaml", ROOT / "config/smoke.yaml"])
    return smoke.model_copy(update={"results": str(tmp_path)})


def progress(config: Config, run: str, time: float, step: int = 3) -> Path:
    log = Path(config.results, "state", run, "progress.jsonl")
    log.parent.mkdir(parents=True)
    lines = [{"time": time - 9, "step": step - 1, "steps": 6, "seconds": 2.0, "eta": 8.0}]
    lines.append({**lines[0], "time": time, "step": step, "eta": 6.0, "message": "reward 0.41"})
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return log


def state_of(config: Config, run: str) -> tuple[str, int, float | None, str]:
    benchmark, method, seed = run.split("/")
    (found,) = [
        s
        for s in statuses(config, NOW)
        if (s.benchmark, s.method, f"seed{s.seed}") == (benchmark, method, seed)
    ]
    return found.state, found.step, found.eta, found.note


RUN = "agentbench_db/rail/seed1000"


def test_nothing_written_is_waiting(config: Config) -> None:
    assert state_of(config, RUN) == ("waiting", 0, None, "")


def test_a_fresh_log_is_running_with_its_eta(config: Config) -> None:
    progress(config, RUN, NOW - 60)
    assert state_of(config, RUN) == ("running", 3, 6.0, "reward 0.41")


def test_silence_beyond_a_minute_and_five_mean_steps_is_stopped(config: Config) -> None:
    # 6 s left for 3 steps: 2 s a step, so patience is 60 + 5 x 2 s.
    log = progress(config, RUN, NOW - 69)
    assert state_of(config, RUN)[0] == "running"
    log.write_text(log.read_text().replace(str(NOW - 69), str(NOW - 71)))
    assert state_of(config, RUN) == ("stopped", 3, None, "reward 0.41")


def test_a_job_log_that_ends_in_an_error_is_failed(config: Config) -> None:
    progress(config, RUN, NOW - 60)
    log = Path(config.results, "logs/train", f"{RUN}.log")
    log.parent.mkdir(parents=True)
    log.write_text("step 3\nrail: results/state: used by process 7\n")
    os.utime(log, (NOW - 1, NOW - 1))
    assert state_of(config, RUN) == ("failed", 3, None, "results/state: used by process 7")


def test_an_error_older_than_the_progress_is_over(config: Config) -> None:
    progress(config, RUN, NOW - 2)
    log = Path(config.results, "logs/train", f"{RUN}.log")
    log.parent.mkdir(parents=True)
    log.write_text("rail: disk full\n")
    os.utime(log, (NOW - 100, NOW - 100))
    assert state_of(config, RUN)[0] == "running"


def test_a_finished_run_is_done_at_its_last_step(config: Config) -> None:
    progress(config, RUN, NOW - 500, step=6)
    run = Path(config.results, "runs", RUN, "run.json")
    run.parent.mkdir(parents=True)
    run.write_text("{}")
    assert state_of(config, RUN)[:3] == ("done", 6, None)


def test_a_line_cut_by_a_kill_is_passed_over(config: Config) -> None:
    log = progress(config, RUN, NOW)
    log.write_text(log.read_text() + '{"time": 1, "st')
    assert last_progress(log)["step"] == 3
