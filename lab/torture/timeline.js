
/* timeline.js: draws, on a canvas, lanes per mutex with a lane for each worker, and below them all faults by worker:
 * a worker has the same faults whatever it owns, so its lanes above are only tinted while a fault is on.
 *
 * Bars that are thinner than a pixel are added up: the height of a column is the share of its time in which the
 * worker owned the mutex. Overlaps are found in the data, not in the pixels, and drawn last, never thinner than
 * LEAST_OVERLAP: whatever the zoom, one that is there is seen. */

const LEAST_OVERLAP = 3;
const LEAST_BAR = 1.5;
const MARK_ROOM = 70;        /* pixels for each mark in a lane with tenures */
const NEAR = 5;              /* pixels from a bar at which the pointer still means it */
const SHORTEST_WINDOW = 2e4; /* ns */
const AFTER_LAST = 1e7;      /* ns in which a fault that began after the last answer may have ended a tenure */
const FONT = "system-ui, 'DejaVu Sans', sans-serif";
const TEXT_LANE = 13;        /* height of a lane that has room for text */
const AXIS_HEIGHT = 20, HEADING_HEIGHT = 22, LETTER_WIDTH = 7.1;

const canvas = byId("lanes"), overview = byId("overview"), tip = byId("tip");
const whole = {from: 0, to: Math.max(run.length, 1)};
const globalFaults = run.faults.filter((fault) => fault.worker < 0 && fault.mutex < 0);
const state = {...whole, selected: null, finding: null, drag: null, isDrawPending: false};
const groups = groupTenures();
const faultGroup = groupFaults();
const lanes = groups.flatMap((group) => group.lanes);
const inOrder = [...run.tenures].sort((a, b) => a.from - b.from);
const size = {width: 0, height: 0, gutter: 0, laneHeight: 0, scale: 1};
let colours = {}, hatches = {};

/* ---- what there is to draw --------------------------------------------------------------------- */

/* The times in which two or more of these tenures are, each with those tenures. One that was seen once was owned
 * at some moment between two: that is an overlap with whoever owned the mutex all the time from one to the other. */
function overlapsOf(tenures) {
    const ENDS = 0, BEGINS = 1, SEEN = 2;
    const events = tenures.flatMap((t) => t.isMoment ? [[t.from, SEEN, t]] : [[t.from, BEGINS, t], [t.to, ENDS, t]]);
    events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const owners = new Set(), found = [];
    let since = 0;
    for (const [at, what, tenure] of events) {
        if (what === SEEN) {
            const others = [...owners].filter((owner) => owner.to >= tenure.to);
            if (others.length > 0)
                found.push({from: tenure.from, to: tenure.to, tenures: [tenure, ...others]});
            continue;
        }
        if (owners.size > 1 && at > since)
            found.push({from: since, to: at, tenures: [...owners]});
        since = at;
        if (what === BEGINS)
            owners.add(tenure);
        else
            owners.delete(tenure);
    }
    return found;
}

/* `latest` is when the last of the tenures so far ended: it rises, so the first one to be seen is soon found. */
function makeLane(worker, tenures) {
    let last = 0;
    const latest = tenures.map((tenure) => (last = Math.max(last, tenure.to)));
    const faults = run.faults.filter((fault) => fault.worker === worker && fault.mutex < 0 && fault.kind !== "end");
    return {worker, tenures, latest, faults};
}

/* A group for each mutex, with a lane for each worker that ever owned it. */
function groupTenures() {
    return Array.from({length: run.mutexes}, (_, mutex) => {
        const tenures = run.tenures.filter((tenure) => tenure.mutex === mutex);
        const workers = [...new Set(tenures.map((tenure) => tenure.worker))].sort((a, b) => a - b);
        return {
            mutex, tenures, overlaps: overlapsOf(tenures),
            findings: run.findings.filter((finding) => finding.mutex === mutex),
            faults: run.faults.filter((fault) => fault.mutex === mutex),
            lanes: workers.map((worker) => makeLane(worker, tenures.filter((t) => t.worker === worker))),
        };
    });
}

/* What struck all comes first. */
function groupFaults() {
    const workers = new Set(run.faults.filter((fault) => fault.mutex < 0).map((fault) => fault.worker));
    const drawn = [...workers].filter((worker) => worker < run.workers.length).sort((a, b) => a - b);
    return {lanes: drawn.map((worker) => makeLane(worker, []))};
}

function layOut() {
    size.laneHeight = lanes.length <= 24 ? 20 : lanes.length <= 60 ? 15 : 11;
    let y = AXIS_HEIGHT;
    for (const group of [...groups, faultGroup]) {
        group.y = y;
        y += HEADING_HEIGHT;
        for (const lane of group.lanes) {
            lane.y = y;
            y += size.laneHeight;
        }
        group.bottom = y;
    }
    size.height = y + 4;
}

const toX = (time) => size.gutter + (time - state.from) / (state.to - state.from) * (size.width - size.gutter);
const toTime = (x) => state.from + (x - size.gutter) / (size.width - size.gutter) * (state.to - state.from);

/* Those of a lane that are in the window. */
function* visibleTenures(lane) {
    let low = 0, high = lane.tenures.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (lane.latest[middle] < state.from)
            low = middle + 1;
        else
            high = middle;
    }
    for (let i = low; i < lane.tenures.length && lane.tenures[i].from <= state.to; i++)
        yield lane.tenures[i];
}

/* ---- drawing ----------------------------------------------------------------------------------- */

function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "line", "text", "dim", "bad", "warn", "bar", "bar-text", "fault", "global", "calm",
        "stripe"])
        colours[name] = style.getPropertyValue(`--${name}`).trim();
    hatches = {fault: makeHatch(colours.fault, false), global: makeHatch(colours.global, true)};
}

function makeHatch(colour, isFalling) {
    const tile = document.createElement("canvas"), side = 6;
    tile.width = tile.height = side;
    const pen = tile.getContext("2d");
    pen.strokeStyle = colour;
    for (const shift of [-side, 0, side]) {
        pen.moveTo(shift, isFalling ? 0 : side);
        pen.lineTo(shift + side, isFalling ? side : 0);
    }
    pen.stroke();
    return pen.createPattern(tile, "repeat");
}

/* On whole pixels where it is that thin, so that none of it fades. */
function fillSpan(pen, span, y, height, least) {
    const from = toX(span.from), to = toX(span.to);
    if (to - from > least + 1)
        pen.fillRect(from, y, to - from, height);
    else
        pen.fillRect(Math.round((from + to - least) / 2), y, least, height);
}

/* Adds a bar to the shares of the columns that it touches, of which it may have a thousandth. */
function addToColumns(columns, from, to) {
    for (let i = Math.max(0, Math.floor(from)); i <= to && i < columns.length; i++)
        columns[i] += Math.max(0.001, Math.min(to, i + 1) - Math.max(from, i));
}

function drawColumns(pen, columns, y, height) {
    columns.forEach((share, i) => {
        const part = Math.max(4, Math.min(1, share) * height);
        if (share > 0)
            pen.fillRect(i, y + height - part, 1, part);
    });
}

function drawTenures(pen, lane) {
    const columns = new Float32Array(Math.ceil(size.width));
    const y = lane.y + 2, height = size.laneHeight - 4;
    const wrong = [];
    pen.fillStyle = colours.bar;
    for (const tenure of visibleTenures(lane)) {
        const from = Math.max(toX(tenure.from), 0), to = Math.min(toX(tenure.to), size.width);
        if (to - from >= LEAST_BAR)
            pen.fillRect(from, y, to - from - (to - from > 5 ? 1 : 0), height);
        else
            addToColumns(columns, from, to);
        if (tenure.wrong)
            wrong.push(tenure);
    }
    drawColumns(pen, columns, y, height);
    pen.strokeStyle = pen.fillStyle = colours.bad;
    for (const tenure of wrong) {
        if (toX(tenure.to) - toX(tenure.from) > 2 * LEAST_OVERLAP)
            pen.strokeRect(toX(tenure.from), y, toX(tenure.to) - toX(tenure.from) - 1, height);
        else
            fillSpan(pen, tenure, y, height, LEAST_OVERLAP);
    }
}

/* The whole of a token, or its last digits, where there is room. */
function drawTokens(pen, lane) {
    pen.fillStyle = colours["bar-text"];
    for (const {from, to, token} of visibleTenures(lane)) {
        const begin = Math.max(toX(from), size.gutter) + 3;
        const letters = Math.floor((Math.min(toX(to), size.width) - begin) / LETTER_WIDTH);
        if (letters > 3)
            pen.fillText(token.length <= letters ? token : `…${token.slice(1 - Math.min(letters, 6))}`, begin,
                lane.y + size.laneHeight / 2);
    }
}

/* A band where it is wide enough, else a mark; deaths are marks always. */
const isBand = (fault) => fault.kind === "fault" && toX(fault.to) - toX(fault.from) >= 7;
const isVisible = (span) => span.to >= state.from && span.from <= state.to;

/* While a fault is on, the lanes of its worker are tinted; marks are there when they do not hide the bars. */
function drawTint(pen, lane) {
    pen.fillStyle = colours.fault;
    pen.globalAlpha = 0.16;
    for (const fault of lane.faults.filter(isVisible))
        fillSpan(pen, fault, lane.y, size.laneHeight, 1);
    pen.globalAlpha = 1;
}

/* With what it is, where there is room. */
function drawFaultBands(pen, lane) {
    for (const fault of lane.faults.filter((f) => isVisible(f) && isBand(f))) {
        pen.fillStyle = lane.worker < 0 ? hatches.global : hatches.fault;
        fillSpan(pen, fault, lane.y, size.laneHeight, 0);
        const from = Math.max(toX(fault.from), size.gutter) + 5, width = pen.measureText(fault.what).width;
        const isHidden = (other) => other !== fault && toX(other.from) < from + width && toX(other.to) > from - NEAR;
        if (size.laneHeight < TEXT_LANE || from + width > toX(fault.to) || lane.faults.some(isHidden))
            continue;
        pen.fillStyle = colours.paper;
        pen.fillRect(from - 3, lane.y + 3, width + 6, size.laneHeight - 6);
        pen.fillStyle = colours.text;
        pen.fillText(fault.what, from, lane.y + size.laneHeight / 2);
    }
}

function drawFaultMarks(pen, lane, least) {
    const faults = lane.faults.filter((f) => isVisible(f) && !isBand(f));
    const room = (size.width - size.gutter) / faults.length, half = Math.min(4, room / 3);
    const y = lane.y + size.laneHeight / 2;
    pen.lineWidth = Math.min(2, half);
    for (const fault of room < least ? [] : faults) {
        const x = toX((fault.from + fault.to) / 2);
        pen.strokeStyle = pen.fillStyle = fault.kind === "crash" ? colours.bad
            : lane.worker < 0 ? colours.global : colours.fault;
        pen.beginPath();
        if (fault.kind === "fault") {
            pen.moveTo(x, y - half);
            [[half, 0], [0, half], [-half, 0]].forEach(([dx, dy]) => pen.lineTo(x + dx, y + dy));
            pen.fill();
            continue;
        }
        pen.moveTo(x - half, y - half);
        pen.lineTo(x + half, y + half);
        pen.moveTo(x - half, y + half);
        pen.lineTo(x + half, y - half);
        pen.stroke();
    }
    pen.lineWidth = 1;
}

function drawBackground(pen) {
    const top = AXIS_HEIGHT, bottom = size.height;
    if (run.calm >= 0) {
        pen.fillStyle = colours.calm;
        fillSpan(pen, {from: run.calm, to: whole.to}, 0, bottom, 2);
    }
    pen.globalAlpha = run.calm >= 0 ? 0.6 : 1;
    pen.fillStyle = colours.stripe;
    for (const lane of lanes.concat(faultGroup.lanes).filter((_, i) => i % 2 === 0))
        pen.fillRect(0, lane.y, size.width, size.laneHeight);
    pen.globalAlpha = 1;
    const seconds = (state.to - state.from) / 1e9 * 110 / (size.width - size.gutter);
    const power = 10 ** Math.floor(Math.log10(seconds));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= seconds);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let i = Math.ceil(state.from / 1e9 / step); i * step * 1e9 <= state.to; i++) {
        const x = Math.round(toX(i * step * 1e9)) + 0.5;
        pen.fillStyle = colours.line;
        pen.fillRect(x, top - 6, 1, bottom - top);
        pen.fillStyle = colours.dim;
        pen.fillText(`${(i * step).toFixed(digits)} s`, x + 3, AXIS_HEIGHT / 2);
    }
    for (const fault of globalFaults.filter(isVisible)) {
        pen.fillStyle = isBand(fault) ? hatches.global : colours.global;
        pen.globalAlpha = 0.35;
        fillSpan(pen, fault, top, bottom - top, 2);
        pen.globalAlpha = 1;
    }
}

/* Through the lanes of all who own it, with a mark in the heading of the mutex. */
function drawOverlaps(pen, group) {
    pen.fillStyle = colours.bad;
    pen.font = `bold 15px ${FONT}`;
    for (const overlap of group.overlaps.filter(isVisible)) {
        const workers = new Set(overlap.tenures.map((tenure) => tenure.worker));
        for (const lane of group.lanes.filter((l) => workers.has(l.worker)))
            fillSpan(pen, overlap, lane.y + 1, size.laneHeight - 2, LEAST_OVERLAP);
        pen.globalAlpha = 0.25;
        fillSpan(pen, overlap, group.y + HEADING_HEIGHT, group.bottom - group.y - HEADING_HEIGHT, LEAST_OVERLAP);
        pen.globalAlpha = 1;
    }
    for (const finding of group.findings.filter((f) => f.at >= state.from && f.at <= state.to)) {
        const x = Math.max(size.gutter, Math.min(toX(finding.at) - 5, size.width - 12));
        pen.fillStyle = finding.kind === "wrong" ? colours.bad : colours.warn;
        pen.fillText(finding.kind === "wrong" ? "✗" : "!", x, group.y + HEADING_HEIGHT / 2 + 2);
        if (finding === state.finding)
            pen.fillRect(toX(finding.at), group.y + HEADING_HEIGHT - 4, 1, group.bottom - group.y - HEADING_HEIGHT);
    }
    pen.font = `11px ${FONT}`;
}

function drawLabels(pen) {
    const isNarrow = size.gutter < 100;
    const label = (worker) => isNarrow ? (worker < 0 ? "all" : `w${worker}`)
        : (worker < 0 ? "all workers" : `worker ${worker} ${run.workers[worker]}`);
    for (const group of [...groups, faultGroup]) {
        const overlaps = group.overlaps?.length > 0 ? `, ${counted(group.overlaps.length, "overlap")}` : "";
        const title = group === faultGroup ? "faults"
            : `mutex ${group.mutex}: ${counted(group.tenures.length, "tenure")}${overlaps}`;
        pen.fillStyle = colours.paper;
        pen.fillRect(0, group.y + 4, pen.measureText(title).width + 3, HEADING_HEIGHT - 6);
        pen.fillStyle = colours.text;
        pen.fillText(title, 0, group.y + HEADING_HEIGHT / 2 + 1);
        pen.fillStyle = colours.dim;
        for (const {worker, y} of group.lanes)
            pen.fillText(label(worker), 0, y + size.laneHeight / 2, size.gutter - 6);
    }
}

function draw() {
    const pen = canvas.getContext("2d");
    state.isDrawPending = false;
    pen.setTransform(size.scale, 0, 0, size.scale, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    pen.font = `11px ${FONT}`;
    pen.textBaseline = "middle";
    pen.save();
    pen.rect(size.gutter, 0, size.width - size.gutter, size.height);
    pen.clip();
    drawBackground(pen);
    for (const group of groups) {
        for (const lane of group.lanes) {
            drawTint(pen, lane);
            drawTenures(pen, lane);
            drawFaultMarks(pen, lane, MARK_ROOM);
        }
        drawFaultMarks(pen, group, 0);
        drawOverlaps(pen, group);
        if (size.laneHeight >= TEXT_LANE)
            group.lanes.forEach((lane) => drawTokens(pen, lane));
    }
    for (const lane of faultGroup.lanes) {
        drawFaultBands(pen, lane);
        drawFaultMarks(pen, lane, 0);
    }
    const lane = state.selected && laneOf(state.selected);
    if (lane) {
        pen.strokeStyle = colours.text;
        pen.lineWidth = 2;
        const from = toX(state.selected.from), to = toX(state.selected.to);
        pen.strokeRect(from - 1, lane.y + 1, Math.max(3, to - from + 1), size.laneHeight - 2);
    }
    if (state.drag) {
        pen.globalAlpha = 0.2;
        pen.fillStyle = colours.text;
        pen.fillRect(state.drag.from, 0, state.drag.to - state.drag.from, size.height);
    }
    pen.restore();
    drawLabels(pen);
    drawOverview();
    const all = state.to - state.from >= whole.to ? " (all)" : "";
    byId("window").textContent = `${showTime(state.from)} to ${showTime(state.to)}${all}`;
}

function drawLater() {
    if (!state.isDrawPending)
        requestAnimationFrame(draw);
    state.isDrawPending = true;
}
