"""Figures of distributions: `bench/latency.py --read` draws results without measuring; curves rise, and every curve is in the legend."""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH)]

import cdf  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def row(path: str, link: str, access: str, rw: str, bins: list[tuple[float, int]]) -> dict:
    return {"path": path, "link": link, "access": access, "rw": rw, "bins": bins}


#: Invented results; bins are not in order, as nothing promises that.
ROWS = [
    row("clerk", "1 Gbit/s", "swap", "randread", [(240.0, 10), (160.0, 85), (8000.0, 5)]),
    row("memoryd", "1 Gbit/s", "nbd", "randread", [(60.0, 90), (110.0, 10)]),
    row("disk", "none", "direct", "randread", [(5000.0, 30), (8300.0, 50), (12000.0, 20)]),
    row("disk", "none", "direct", "write", [(120.0, 100)]),
    row("clerk", "1 Gbit/s", "cached", "write", [(0.05, 10), (9.0, 90)]),
    row("clerk", "10 Gbit/s", "swap", "randread", [(90.0, 100)]),
    row("clerk", "1 Gbit/s", "nbd", "randread", [(100.0, 100)]),
]


def drawn(folder: Path, rows: list[dict]) -> subprocess.CompletedProcess:
    results = folder / "latency.json"
    results.write_text(json.dumps({"latency": {"runs": 1, "seconds": 1, "rows": rows}}))
    return subprocess.run([sys.executable, BENCH / "latency.py", "--read", results, "--figure", folder / "latency.svg"], capture_output=True, text=True)


@pytest.fixture(scope="module")
def figure(tmp_path_factory) -> ElementTree.Element:
    folder = tmp_path_factory.mktemp("figure")
    done = drawn(folder, ROWS)
    assert done.returncode == 0, done.stderr
    return ElementTree.parse(folder / "latency.svg").getroot()


def panels(figure: ElementTree.Element) -> dict[str, ElementTree.Element]:
    groups = [group for group in figure.iter(f"{SVG}g") if group.get("class") == "panel"]
    return {next(text.text for text in group.iter(f"{SVG}text") if text.get("class") == "name"): group for group in groups}


def curves(panel: ElementTree.Element) -> dict[str, list[tuple[float, float]]]:
    """Points of each curve, by name."""
    paths = [path for path in panel.iter(f"{SVG}path") if path.get("class").startswith("curve")]
    points = lambda path: [tuple(map(float, point.split())) for point in path.get("d").removeprefix("M").split("L")]
    return {path.find(f"{SVG}title").text: points(path) for path in paths}


def test_each_panel_has_the_curves_of_its_pattern(figure):
    found = {name: set(curves(panel)) for name, panel in panels(figure).items()}
    assert found == {
        "random reads": {"clerk, swap", "memoryd, nbd", "disk, direct"},
        "sequential writes": {"disk, direct"},
        "through the page cache": {"clerk, sequential writes"},
    }


def test_curves_rise_from_nothing_to_all_requests(figure):
    for panel in panels(figure).values():
        grid = [path.get("d") for path in panel.iter(f"{SVG}path") if path.get("class") == "grid"]
        levels = [float(re.fullmatch(r"M\S+ (\S+)h\d+", line)[1]) for line in grid if "h" in line]
        for points in curves(panel).values():
            xs, ys = zip(*points)
            assert list(xs) == sorted(xs)
            # SVG counts downwards.
            assert list(ys) == sorted(ys, reverse=True)
            assert (ys[0], ys[-1]) == (max(levels), min(levels))


def test_equal_latencies_are_at_equal_places_of_a_logarithmic_axis(figure):
    random = panels(figure)["random reads"]
    ticks = {text.text: float(text.get("x")) for text in random.iter(f"{SVG}text") if text.get("class") == "middle"}
    steps = [ticks[after] - ticks[before] for before, after in (("10", "100"), ("100", "1,000"), ("1,000", "10,000"))]
    assert max(steps) - min(steps) < 0.3
    clerk = curves(random)["clerk, swap"]
    # The step at 8 ms is between the marks of 1 and 10 ms, at log10(8) = 0.903.
    assert clerk[-1][0] == pytest.approx(ticks["1,000"] + 0.903 * steps[-1], abs=0.3)
    # 85 % of the requests took 160 us.
    ys = [y for _, y in clerk]
    assert (ys[0] - ys[1]) / (ys[0] - ys[-1]) == pytest.approx(0.85, abs=0.01)


def test_the_legend_names_each_curve_once_with_its_look(figure):
    legend = next(group for group in figure.iter(f"{SVG}g") if group.get("class") == "legend")
    texts, marks = [text.text for text in legend.iter(f"{SVG}text")], [path.get("class") for path in legend.iter(f"{SVG}path")]
    drawn_curves = {path.find(f"{SVG}title").text: path.get("class") for path in figure.iter(f"{SVG}path") if path.find(f"{SVG}title") is not None}
    assert len(texts) == len(set(texts)) == len(set(marks))
    assert dict(zip(texts, marks)) == drawn_curves


def test_axes_have_titles_with_units_and_the_figure_is_described_in_words(figure):
    for panel in panels(figure).values():
        axes = [text.text for text in panel.iter(f"{SVG}text") if text.get("class") == "middle axis"]
        assert axes == ["latency in µs, logarithmic", "share of requests in %"]
    title, description = figure.find(f"{SVG}title"), figure.find(f"{SVG}desc")
    assert figure.get("role") == "img" and figure.get("aria-labelledby").split() == [title.get("id"), description.get("id")]
    assert title.text and "clerk, swap: half within 160 µs, 99 % within 8000 µs" in description.text


def test_both_colour_schemes_have_every_look_with_enough_contrast(figure):
    light, dark = figure.find(f"{SVG}style").text.split("@media (prefers-color-scheme:dark)")
    looks = {word for path in figure.iter(f"{SVG}path") for word in path.get("class").split() if re.fullmatch(r"c\d", word)}
    for rules in (light, dark):
        assert looks <= set(re.findall(r"\.(c\d)\{stroke:", rules))
        assert ".background{fill:" in rules and "text{fill:" in rules
    for scheme, colours in cdf.COLOURS.items():
        assert all(contrast(colour, cdf.BACKGROUND[scheme]) >= 3 for colour in colours), scheme
        assert contrast(cdf.TEXT[scheme], cdf.BACKGROUND[scheme]) >= 7, scheme


def contrast(first: str, second: str) -> float:
    """Contrast of two colours (WCAG 2.1)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted(luminance(colour) for colour in (first, second))
    return (light + 0.05) / (dark + 0.05)


def test_results_without_a_link_of_the_figure_are_refused(tmp_path):
    done = drawn(tmp_path, [row("clerk", "10 Gbit/s", "swap", "randread", [(90.0, 1)])])
    assert done.returncode == 1 and "no figure" in done.stderr and not (tmp_path / "latency.svg").exists()
