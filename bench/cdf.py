"""Figures of distributions as plain SVG: one panel for each group of curves, with a logarithmic axis of microseconds."""

import math
from html import escape
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, GAP, LEGEND = 420, 250, 52, 34, 40, 26
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444", "#999999")
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""
DASHES = ("", "7 3", "2 2", "8 3 2 3")

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
    looks = {name: (COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]) for i, name in enumerate(names)}
    every = [us for curves in panels.values() for bins in curves.values() for us, count in bins if count]
    low, high = math.floor(math.log10(max(min(every), 0.1))), math.ceil(math.log10(max(every)))
    rows, lines = math.ceil(len(panels) / 2), math.ceil(len(names) / 4)
    width, height = 2 * (WIDTH + LEFT + GAP), TOP + rows * (HEIGHT + TOP + GAP) + lines * LEGEND
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, (panel, curves) in enumerate(panels.items()):
        x0, y0 = LEFT + number % 2 * (WIDTH + LEFT + GAP), 2 * TOP + number // 2 * (HEIGHT + TOP + GAP)
        x = lambda us: x0 + WIDTH * (math.log10(max(us, 10**low)) - low) / (high - low)  # noqa: E731
        out.append(f'<text x="{x0}" y="{y0 - 10}" font-weight="bold">{escape(panel)}</text>')
        for exponent in range(low, high + 1):
            at, label = x(10**exponent), f"{10**exponent:g} µs" if exponent < 3 else f"{10 ** (exponent - 3):g} ms"
            out.append(f'<path d="M{at:.1f} {y0}v{HEIGHT}" stroke="#ddd"/><text x="{at:.1f}" y="{y0 + HEIGHT + 16}" text-anchor="middle">{label}</text>')
        for share in (0, 0.25, 0.5, 0.75, 1):
            at = y0 + HEIGHT * (1 - share)
            out.append(f'<path d="M{x0} {at:.1f}h{WIDTH}" stroke="#ddd"/><text x="{x0 - 6}" y="{at + 4:.1f}" text-anchor="end">{share:.0%}</text>')
        for name, bins in curves.items():
            path_data, level = [], 0.0
            for us, share in cumulative(bins):
                path_data.append(f"{x(us):.1f} {y0 + HEIGHT * (1 - level):.1f}L{x(us):.1f} {y0 + HEIGHT * (1 - share):.1f}")
                level = share
            colour, dash = looks[name]
            out.append(f'<path d="M{"L".join(path_data)}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"/>')
    for number, name in enumerate(names):
        colour, dash = looks[name]
        at_x, at_y = LEFT + number % 4 * (width - LEFT) / 4, height - lines * LEGEND + number // 4 * LEGEND
        out.append(f'<path d="M{at_x:.0f} {at_y}h24" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
        out.append(f'<text x="{at_x + 30:.0f}" y="{at_y + 4}">{escape(name)}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*out, "</svg>"]) + "\n")
