"""The report: every number from a file, every missing piece said, one self-contained page."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rail.claims import compute, load_claims, write_ledger
from rail.config import Config
from rail.errors import ConfigError, DataError
from rail.report import render
from rail.report.deviations import load_deviations
from rail.report.figures import inline
from rail.report.sheets import Links, number, read_pivot, read_sheet
from rail.tables.headroom import headroom_table
from tests.synthetic import BENCHMARK, LABELS, SEEDS, make_results

ROOT = Path(__file__).parents[1]
SVG = (
    '<?xml version="1.0"?>\n<svg width="10pt" height="5pt" viewBox="0 0 10 5">'
    '<metadata>x</metadata><g id="a"><use href="#a"/><path clip-path="url(#a)"/></g></svg>'
)


class Page(HTMLParser):
    """What a reader of the markup meets: tags, ids, links, text."""

    VOID = ("meta", "br", "use", "path")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.heads: list[int] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.links += [given[name] for name in ("href", "src", "xlink:href") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        self.heads += [int(tag[1])] if re.fullmatch(r"h[1-6]", tag) else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
def deviations(tmp_path: Path) -> Path:
    path = tmp_path / "deviations.yaml"
    path.write_text("deviations:\n- {id: d1, section: '5', what: 'a < b & c', why: because}\n")
    return path


def config(results: Path) -> Config:
    return Config(
        scale="synthetic",
        results=str(results),
        benchmarks=(BENCHMARK,),
        method_sets=("spine",),
        seeds=SEEDS,
    )


def rendered(results: Path, deviations: Path) -> tuple[str, Page]:
    out = results / "report.html"
    render(config(results), LABELS, out, deviations)
    return out.read_text(), Page(out.read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = make_results(tmp_path_factory.mktemp("results"))
    claims = load_claims(ROOT / "config" / "claims.yaml")
    write_ledger(compute(claims, results, SEEDS), results)
    (results / "figures").mkdir()
    (results / "figures" / "table1.svg").write_text(SVG)
    (results / "figures" / "table1.caption.txt").write_text("Open marks <seeds>.")
    (results / "figures" / "extra.svg").write_text(SVG)
    headroom_table(results, BENCHMARK).to_csv(results / "tables" / "headroom.csv", index=False)
    (results / "tables" / "table1.csv").write_text(
        "method,seeds,sampled,sampled_low,sampled_high,minus_reference\n"
        "rail,4,0.41,0.3,0.5,\ngrpo_8,4,0.4567,,,-0.0467\n"
    )
    return results


def test_page_is_well_formed_and_needs_nothing_else(finished: Path, deviations: Path) -> None:
    text, page = rendered(finished, deviations)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert page.heads[0] == 1
    assert page.heads.count(1) == 1
    assert all(
        after <= before + 1 for before, after in zip(page.heads, page.heads[1:], strict=False)
    )
    assert not re.search(r"<script|<link|@import|https?://(?!www\.w3\.org)", text)
    assert not [link for link in page.links if link.startswith(("http", "//", "/"))]
    inner = {link[1:] for link in page.links if link.startswith("#")}
    assert inner <= set(page.ids)


def test_every_link_to_a_file_leads_somewhere(finished: Path, deviations: Path) -> None:
    _, page = rendered(finished, deviations)
    files = {link for link in page.links if not link.startswith("#")}
    missing = {file for file in files if not (finished / file).exists()}
    assert missing == {"figures/table1.pdf", "figures/extra.pdf"}  # the fixture draws no PDF
    assert "claims.json" in files


def test_every_claim_stands_with_verdict_and_numbers(finished: Path, deviations: Path) -> None:
    _, page = rendered(finished, deviations)
    rows = json.loads((finished / "claims.json").read_text())
    assert {f"claim-{row['id']}" for row in rows} <= set(page.ids)
    for row in rows:
        assert row["statement"] in page.words
        assert number(row["estimate"], sign=True) in page.words
    counted = [row["verdict"] for row in rows]
    assert f"{len(rows)} claims" in page.words
    assert f"{counted.count('undecided')} undecided" in page.words


def test_development_runs_are_announced(finished: Path, deviations: Path) -> None:
    _, page = rendered(finished, deviations)
    assert "Development runs." in page.words
    assert "1000, 1001, 1002, 1003" in page.words


def test_registered_claims_need_no_banner(tmp_path: Path, finished: Path, deviations: Path) -> None:
    rows = json.loads((finished / "claims.json").read_text())
    for row in rows:
        row["registered"] = "yes"
    (tmp_path / "claims.json").write_text(json.dumps(rows))
    assert "Development runs." not in rendered(tmp_path, deviations)[1].words
    rows[0]["registered"] = "deviation"
    (tmp_path / "claims.json").write_text(json.dumps(rows))
    assert "Development runs." in rendered(tmp_path, deviations)[1].words


def test_headroom_stands_before_the_claims(finished: Path, deviations: Path) -> None:
    text, page = rendered(finished, deviations)
    # The fixture: all-pass too rare on warm start 0, all-fail groups nowhere recoverable enough.
    assert "all-pass groups (3 of 4)" in page.words
    assert "recoverable share within all-fail groups (0 of 4)" in page.words
    assert "The premise is weak here" in page.words
    assert text.index('class="tiles"') < text.index('id="claims"')


def test_empty_folder_says_not_run_everywhere(tmp_path: Path, deviations: Path) -> None:
    text, page = rendered(tmp_path, deviations)
    for name in ("claims.json", "headroom.csv", "table1.csv", "figure3.csv", "figure3.svg"):
        assert name in page.words
    assert "The claims were not run." in page.words
    assert "0 of 28 runs are finished" in page.words
    assert "lr_sweep" not in page.words
    assert text.count("Not run") >= 8


def test_words_of_files_are_escaped(finished: Path, deviations: Path) -> None:
    text, page = rendered(finished, deviations)
    assert "a &lt; b &amp; c" in text
    assert "Open marks <seeds>." in page.words


def test_same_results_give_the_same_page(finished: Path, deviations: Path) -> None:
    assert rendered(finished, deviations)[0] == rendered(finished, deviations)[0]


def test_provenance_sums_the_clock_and_shows_differing_versions(
    finished: Path, deviations: Path
) -> None:
    _, page = rendered(finished, deviations)
    # 4 seeds of 16 steps: 1.25 s wall and 1.0 s CPU each.
    assert re.search(r"RAIL\s*4 of 4\s*80\.0\s*64\.0", page.words)
    assert "step 5, criterion" in page.words
    assert "the runs differ" not in page.words
    descriptor = finished / "runs" / BENCHMARK / "rail" / "seed1000" / "run.json"
    kept = descriptor.read_text()
    descriptor.write_text(kept.replace("2.13.0", "2.12.0"))
    _, changed = rendered(finished, deviations)
    descriptor.write_text(kept)
    assert "2.12.0; 2.13.0 the runs differ" in changed.words


def test_damaged_ledger_is_named(tmp_path: Path, deviations: Path) -> None:
    (tmp_path / "claims.json").write_text('[{"id": "P1"}]')
    with pytest.raises(DataError, match=r"claims\.json: not a ledger"):
        rendered(tmp_path, deviations)


def test_sheet_joins_an_estimate_with_its_interval(finished: Path) -> None:
    sheet = read_sheet(Links(finished, finished), "table1", "T", "", {"rail": "RAIL"})
    assert sheet.columns == ("method", "seeds", "sampled", "minus reference")
    assert sheet.numeric == (False, True, True, True)
    assert sheet.rows == (
        ("RAIL", "4", "0.410\n[0.300, 0.500]", "\N{EN DASH}"),
        ("grpo_8", "4", "0.457", "\N{MINUS SIGN}0.047"),
    )


def test_row_that_does_not_fit_its_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(DataError, match=r"t\.csv: line 3"):
        read_sheet(Links(tmp_path, tmp_path), "t", "T", "")


def test_pivot_has_a_column_per_measure(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.csv").write_text(
        "draws,measure,window,mean,low,high,n\n"
        "explore,r,0,0.5,0.4,0.6,9\nexplore,mae,0,0.1,,,9\nexplore,r,8,0.9,,,1\nall,mae,0,0.2,,,5\n"
    )
    sheet = read_pivot(Links(tmp_path, tmp_path), "t", "T", "", ("draws",), {"window": "0"})
    assert sheet.columns == ("draws", "r", "mae", "n")
    assert sheet.rows == (
        ("explore", "0.500\n[0.400, 0.600]", "0.100", "9"),
        ("all", "", "0.200", "5"),
    )


def test_inlined_figure_has_ids_of_its_own_and_a_name() -> None:
    markup = str(inline(SVG, "one", "A & B"))
    assert 'id="one-a"' in markup
    assert 'href="#one-a"' in markup
    assert "url(#one-a)" in markup
    assert '<title id="one-title">A &amp; B</title>' in markup
    assert "metadata" not in markup
    assert 'width="10pt"' not in markup


@pytest.mark.parametrize("bad", ["", "<svg><script/></svg>", '<svg onload="x"></svg>',
                                 '<svg><image href="http://a/b"/></svg>'])  # fmt: skip
def test_figure_that_is_no_plain_svg_is_refused(bad: str) -> None:
    with pytest.raises(DataError, match=r"one\.svg"):
        inline(bad, "one", "title")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("deviations: 3", "one key"),
        ("deviations:\n- {id: a, section: '1', what: w}", "entry 1: why"),
        ("deviations:\n- {id: a, section: '1', what: w, why: y, how: z}", "entry 1: how"),
        ("deviations:\n" + "- {id: a, section: '1', what: w, why: y}\n" * 2, "used twice"),
        (":::", "expected|cannot be read"),
    ],
)
def test_deviation_list_is_checked(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "d.yaml").write_text(content)
    with pytest.raises(ConfigError, match=words):
        load_deviations(tmp_path / "d.yaml")


def test_deviations_of_the_repository_load() -> None:
    assert load_deviations(ROOT / "config" / "deviations.yaml")
