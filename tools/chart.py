"""chart.py: charts as SVG, for scripts/report: bars beside each other, and curves over a logarithmic axis. They look like
the pictures of tools/draw: they follow the reader's light or dark scheme, and need neither fonts nor network. A curve has
its own mark and its name at its end, so that nobody depends on colours."""
import importlib.machinery
import importlib.util
import math
import pathlib
import sys

sys.dont_write_bytecode = True
_loader = importlib.machinery.SourceFileLoader("draw", str(pathlib.Path(__file__).resolve().parent / "draw"))
draw = importlib.util.module_from_spec(importlib.util.spec_from_loader("draw", _loader))
_loader.exec_module(draw)

WIDTH, EDGE = 760, 16
LIGHT = ("#0550ae", "#b35900", "#1a7f37", "#8250df", "#b3141d", "#59636e")
DARK = ("#79c0ff", "#f0a044", "#56d364", "#c29bff", "#ff8e86", "#9198a1")
MARKS = 6


def colours():
    def scheme(values):
        return "".join(f".c{i}{{stroke:{v}}}.f{i}{{fill:{v}}}" for i, v in enumerate(values))

    return f".curve{{fill:none;stroke-width:2}}{scheme(LIGHT)}@media(prefers-color-scheme:dark){{{scheme(DARK)}}}"


def number(value):
    """As people write it, with three digits that count."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        digits = max(0, len(str(int(abs(value)))) - 3)
        return f"{round(value, -digits):,.0f}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}".rstrip("0").rstrip(".") if places else f"{value:.0f}"


def tick(value):
    """For an axis: 10k, 1M, 0.1."""
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{sign}"
    return f"{value:g}"


def mark(kind, x, y):
    """A shape for each curve."""
    shapes = {0: f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>',
              1: f'<rect x="{x - 3.6:.1f}" y="{y - 3.6:.1f}" width="7.2" height="7.2"/>',
              2: f'<path d="M{x:.1f} {y - 5:.1f}l4.6 8.4h-9.2z"/>',
              3: f'<path d="M{x:.1f} {y - 5:.1f}l5 5-5 5-5-5z"/>',
              4: f'<path d="M{x:.1f} {y + 5:.1f}l4.6-8.4h-9.2z"/>',
              5: f'<path d="M{x - 4.5:.1f} {y - 1.5:.1f}h9v3h-9z"/>'}
    return f'<g class="f{kind}">{shapes[kind % MARKS]}</g>\n'


# ---- bars ----------------------------------------------------------------------------------------------------------

def bars(title, description, groups, unit, line=None, logarithmic=False):
    """groups: [(name, [(label, value, kind)])]. line: (value, its name), for what to compare with."""
    left, right, top, row, gap = 240, 90, 62, 24, 14
    values = [value for _, all_of_it in groups for _, value, _ in all_of_it]
    most = max(values + ([line[0]] if line else []))
    least = min(values + ([line[0]] if line else []))
    low = 10 ** math.floor(math.log10(least)) if logarithmic and least > 0 else 0
    if logarithmic and low == least:
        low /= 10

    def at(value):
        room = WIDTH - left - right
        share = math.log(max(value, low) / low) / math.log(most / low) if logarithmic else value / most
        return left + room * share

    out, y = [], top
    for name, all_of_it in groups:
        out.append(draw.text(EDGE, y + 16, name, "text sans b", 13))
        for label, value, kind in all_of_it:
            out.append(draw.text(left - 8, y + 16, label, "dim sans", 12, "end"))
            out.append(f'<rect class="f{kind}" x="{left}" y="{y + 4}" width="{max(1, at(value) - left):.1f}" height="{row - 8}" rx="2"/>\n')
            out.append(draw.text(max(left, at(value)) + 6, y + 16, number(value) + unit, "text sans", 12))
            y += row
        y += gap
    if line:
        x = at(line[0])
        out.append(f'<path class="ink" stroke-dasharray="4 3" d="M{x:.1f} {top - 6}V{y - gap + 4}"/>\n')
        out.append(draw.text(x, top - 10, line[1], "dim sans", 12, "middle"))
    return (draw.opening(WIDTH, y + 6, title, description, colours())
            + draw.text(EDGE, 27, title, "text sans b", 15) + "".join(out) + "</svg>\n")


# ---- curves --------------------------------------------------------------------------------------------------------

def decades(low, high):
    """The powers of ten around them."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    return [10.0 ** i for i in range(first, max(last, first + 1) + 1)]


def spread(wanted, distance, low, high):
    """Heights near those wanted, that far apart."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    made, last = {}, low - distance
    for i in order:
        last = made[i] = max(wanted[i], last + distance)
    limit = high + distance
    for i in reversed(order):
        limit = made[i] = min(made[i], limit - distance)
    return [made[i] for i in range(len(wanted))]


def curves(title, description, series, x_name, y_name, x_ticks=None, from_zero=False):
    """series: [(name, [(x, y)])]; x is logarithmic, and so is y, unless from_zero."""
    left, right, top, bottom, height = 64, 150, 66, 48, 380
    points = [p for _, all_of_it in series for p in all_of_it]
    xs = x_ticks or decades(min(x for x, _ in points), max(x for x, _ in points))
    highest = max(y for _, y in points)
    step = 10 ** math.floor(math.log10(highest)) if highest > 0 else 1
    step = next(s for s in (step / 5, step / 2, step, step * 2) if highest / s <= 6)
    ys = ([i * step for i in range(math.ceil(highest / step) + 1)] if from_zero
          else decades(min(y for _, y in points), highest))

    def to_x(x):
        return left + (WIDTH - left - right) * math.log(x / xs[0]) / math.log(xs[-1] / xs[0])

    def to_y(y):
        share = y / ys[-1] if from_zero else math.log(y / ys[0]) / math.log(ys[-1] / ys[0])
        return height - bottom - (height - top - bottom) * share

    out = [draw.text(EDGE, 27, title, "text sans b", 15), draw.text(EDGE, 48, y_name, "dim sans", 12)]
    for y in ys:
        out.append(f'<path class="stroke" d="M{left} {to_y(y):.1f}H{WIDTH - right}"/>\n')
        out.append(draw.text(left - 8, to_y(y) + 4, tick(float(f"{y:.6g}")), "dim sans", 12, "end"))
    for x in xs:
        out.append(f'<path class="stroke" d="M{to_x(x):.1f} {top}V{height - bottom}"/>\n')
        out.append(draw.text(to_x(x), height - bottom + 18, tick(x), "dim sans", 12, "middle"))
    out.append(draw.text((left + WIDTH - right) / 2, height - 12, x_name, "dim sans", 12, "middle"))
    ends = spread([to_y(all_of_it[-1][1]) for _, all_of_it in series], 16, top, height - bottom)
    for kind, (name, all_of_it) in enumerate(series):
        places = [(to_x(x), to_y(y)) for x, y in all_of_it]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        out.append(f'<path class="curve c{kind}" d="M{path}"/>\n')
        out += [mark(kind, x, y) for x, y in places]
        x, y = places[-1]
        label = WIDTH - right + 22
        out.append(f'<path class="curve c{kind}" stroke-opacity=".45" stroke-dasharray="2 3" style="stroke-width:1" '
                   f'd="M{x + 6:.1f} {y:.1f}L{label - 12:.1f} {ends[kind]:.1f}"/>\n')
        out.append(mark(kind, label - 4, ends[kind]))
        out.append(draw.text(label + 6, ends[kind] + 4, name, "text sans", 13))
    return draw.opening(WIDTH, height, title, description, colours()) + "".join(out) + "</svg>\n"
