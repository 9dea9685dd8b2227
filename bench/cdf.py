"""Figures of distributions as plain SVG: one panel for each group of curves, with a logarithmic axis of microseconds, in the reader's light or dark colours."""

import math
from html import escape
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, GAP, LEGEND = 420, 250, 66, 34, 62, 26
COLOURS = {"light": ("#0072b2", "#d55e00", "#00805d", "#b3528a", "#444444"), "dark": ("#56b4e9", "#e69f00", "#2fc49a", "#e3a5c8", "#dddddd")}
"""Colours of curves after Okabe and Ito's, which colour-blind readers can tell apart; each has a contrast of 3:1 with the background at least."""
BACKGROUND = {"light": "#ffffff", "dark": "#16191d"}
TEXT = {"light": "#1a1a1a", "dark": "#e6e6e6"}
GRID = {"light": "#dddddd", "dark": "#3a3f45"}
DASHES = ("none", "7 3", "2 2", "8 3 2 3")

Bins = list[tuple[float, int]]


def cumulative(bins: Bins) -> list[tuple[float, float]]:
    """Points of a distribution: microseconds, and the share of requests that took no longer."""
    total, below, points = sum(count for _, count in bins), 0, []
    for us, count in sorted(bins):
        below += count
        points.append((us, below / total))
    return points


def draw(panels: dict[str, dict[str, Bins]], title: str, path: Path) -> None:
    """Writes panels of curves by name, two side by side; a curve has the same look in all of them."""
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    looks = {name: f"c{i % len(COLOURS['light'])} d{i // len(COLOURS['light']) % len(DASHES)}" for i, name in enumerate(names)}
    every = [us for curves in panels.values() for bins in curves.values() for us, count in bins if count]
    low, high = math.floor(math.log10(max(min(every), 0.1))), math.ceil(math.log10(max(every)))
    exponents = low, max(high, low + 1)
    rows, lines = math.ceil(len(panels) / 2), math.ceil(len(names) / 4)
    width, height = 2 * (WIDTH + LEFT + GAP), TOP + rows * (HEIGHT + TOP + GAP) + lines * LEGEND
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(description(panels))}</desc>',
        f"<style>{style()}</style>",
        f'<rect class="background" width="{width}" height="{height}"/>',
    ]
    for number, (name, curves) in enumerate(panels.items()):
        x0, y0 = LEFT + number % 2 * (WIDTH + LEFT + GAP), 2 * TOP + number // 2 * (HEIGHT + TOP + GAP)
        out += panel(name, {curve: (bins, looks[curve]) for curve, bins in curves.items()}, (x0, y0), exponents)
    out.append('<g class="legend">')
    for number, name in enumerate(names):
        at_x, at_y = LEFT + number % 4 * (width - LEFT) / 4, height - lines * LEGEND + number // 4 * LEGEND
        out.append(f'<path class="curve {looks[name]}" d="M{at_x:.0f} {at_y}h24"/>')
        out.append(f'<text x="{at_x + 30:.0f}" y="{at_y + 4}">{escape(name)}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*out, "</g>", "</svg>"]) + "\n")


def panel(name: str, curves: dict[str, tuple[Bins, str]], corner: tuple[int, int], exponents: tuple[int, int]) -> list[str]:
    """One panel: axes with their titles, and the curves as steps."""
    (x0, y0), (low, high) = corner, exponents
    x = lambda us: x0 + WIDTH * (math.log10(max(us, 10**low)) - low) / (high - low)  # noqa: E731
    y = lambda share: y0 + HEIGHT * (1 - share)  # noqa: E731
    out = ['<g class="panel">', f'<text class="name" x="{x0}" y="{y0 - 10}">{escape(name)}</text>']
    for exponent in range(low, high + 1):
        at = x(10**exponent)
        label = f"{10**exponent:,}" if exponent >= 0 else f"{10**exponent:g}"
        out.append(f'<path class="grid" d="M{at:.1f} {y0}v{HEIGHT}"/><text class="middle" x="{at:.1f}" y="{y0 + HEIGHT + 16}">{label}</text>')
    for percent in (0, 25, 50, 75, 100):
        at = y(percent / 100)
        out.append(f'<path class="grid" d="M{x0} {at:.1f}h{WIDTH}"/><text class="end" x="{x0 - 6}" y="{at + 4:.1f}">{percent}</text>')
    out.append(f'<text class="middle axis" x="{x0 + WIDTH / 2:.0f}" y="{y0 + HEIGHT + 34}">latency in µs, logarithmic</text>')
    turned = f"{x0 - 42} {y0 + HEIGHT / 2:.0f}"
    out.append(f'<text class="middle axis" transform="translate({turned}) rotate(-90)">share of requests in %</text>')
    for curve, (bins, look) in curves.items():
        corners, level = [], 0.0
        for us, share in cumulative(bins):
            corners.append(f"{x(us):.1f} {y(level):.1f}L{x(us):.1f} {y(share):.1f}")
            level = share
        out.append(f'<path class="curve {look}" d="M{"L".join(corners)}"><title>{escape(curve)}</title></path>')
    return [*out, "</g>"]


def style() -> str:
    """Rules for both colour schemes; light is the default."""
    common = [
        "text{font:12px sans-serif;stroke:none}",
        ".name{font-weight:bold}.middle{text-anchor:middle}.end{text-anchor:end}",
        ".curve{fill:none;stroke-width:1.8}.grid{fill:none}",
        *(f".d{i}{{stroke-dasharray:{dash}}}" for i, dash in enumerate(DASHES)),
    ]

    def scheme(name: str) -> str:
        curves = "".join(f".c{i}{{stroke:{colour}}}" for i, colour in enumerate(COLOURS[name]))
        return f".background{{fill:{BACKGROUND[name]}}}text{{fill:{TEXT[name]}}}.grid{{stroke:{GRID[name]}}}{curves}"

    return "".join(common) + scheme("light") + f"@media (prefers-color-scheme:dark){{{scheme('dark')}}}"


def description(panels: dict[str, dict[str, Bins]]) -> str:
    """The figure in words: each curve's median and 99th percentile."""
    sentences = []
    for name, curves in panels.items():
        figures = []
        for curve, bins in curves.items():
            points = cumulative(bins)
            half, most = (next(us for us, share in points if share >= least) for least in (0.5, 0.99))
            figures.append(f"{curve}: half within {half:g} µs, 99 % within {most:g} µs")
        sentences.append(f"{name[:1].upper()}{name[1:]}: {'; '.join(figures)}.")
    return " ".join(sentences)
