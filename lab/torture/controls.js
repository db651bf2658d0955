
/* controls.js: overview, zoom, tooltip, keyboard and pointer of the timeline. */

const STEP = 0.2, ZOOM = 1.6;
const LINES_MAX = 6; /* faults in a tooltip */

/* ---- the overview ------------------------------------------------------------------------------ */

let overviewPicture = null; /* of the whole run: it stays the same while the window moves */

function drawWholeRun(width, height) {
    const picture = document.createElement("canvas");
    picture.width = width;
    picture.height = height;
    const pen = picture.getContext("2d"), scale = width / whole.to;
    const band = (span, colour, least) => {
        const long = Math.max(least, (span.to - span.from) * scale);
        pen.fillStyle = colour;
        pen.fillRect(Math.min(span.from * scale, width - long - 2), 0, long, height);
    };
    if (run.calm >= 0)
        band({from: run.calm, to: whole.to}, colours.calm, 1);
    globalFaults.forEach((fault) => band(fault, hatches.global, 1));
    const strip = (height - 4) / Math.max(1, groups.length);
    groups.forEach((group, i) => {
        const columns = new Float32Array(width);
        group.tenures.forEach((tenure) => addToColumns(columns, tenure.from * scale, tenure.to * scale));
        pen.fillStyle = colours.bar;
        drawColumns(pen, columns, 2 + i * strip, Math.max(1, strip - 2));
    });
    groups.flatMap((group) => group.overlaps).forEach((overlap) => band(overlap, colours.bad, LEAST_OVERLAP));
    for (const {at, kind} of run.findings)
        band({from: at, to: at}, kind === "wrong" ? colours.bad : colours.warn, LEAST_OVERLAP);
    return picture;
}

function drawOverview() {
    const pen = overview.getContext("2d"), {width, height} = overview;
    overviewPicture ??= drawWholeRun(width, height);
    pen.clearRect(0, 0, width, height);
    pen.drawImage(overviewPicture, 0, 0);
    const from = state.from / whole.to * width, to = state.to / whole.to * width;
    pen.fillStyle = colours.paper;
    pen.globalAlpha = 0.65;
    pen.fillRect(0, 0, from, height);
    pen.fillRect(to, 0, width - to, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = colours.text;
    pen.lineWidth = 2;
    pen.strokeRect(from + 1, 1, Math.max(2, to - from - 2), height - 2);
}

/* ---- the window -------------------------------------------------------------------------------- */

/* Moved and cut so that it is within the run. True if it has changed. */
function setWindow(from, to) {
    const length = Math.min(whole.to, Math.max(SHORTEST_WINDOW, to - from));
    const begin = Math.max(0, Math.min((from + to - length) / 2, whole.to - length));
    const isChanged = begin !== state.from || begin + length !== state.to;
    state.from = begin;
    state.to = begin + length;
    drawLater();
    return isChanged;
}

function zoom(factor, centre = (state.from + state.to) / 2) {
    return setWindow(centre - (centre - state.from) * factor, centre + (state.to - centre) * factor);
}

function pan(share) {
    const by = (state.to - state.from) * share;
    const shift = Math.max(-state.from, Math.min(by, whole.to - state.to));
    return setWindow(state.from + shift, state.to + shift);
}

/* What the finding is about, with what is around it: an overlap, or the tenure that it names. */
function showFinding(finding) {
    const ofMutex = groups[finding.mutex];
    const named = ofMutex.tenures.filter((tenure) => tenure.token === finding.token);
    const tenure = named.find((t) => t.worker === finding.worker) ?? named[0] ?? null;
    const span = ofMutex.overlaps.find((overlap) => overlap.tenures.includes(tenure)) ?? tenure;
    const from = Math.min(finding.at, span?.from ?? finding.at), to = Math.max(finding.at, span?.to ?? finding.at);
    const around = span === null ? run.bound_ms * 1e6 : Math.max(1e6, (to - from) * (span === tenure ? 1 : 5));
    setWindow(from - around, to + around);
    state.finding = finding;
    state.selected = tenure;
    byId("timeline").scrollIntoView();
    canvas.focus({preventScroll: true});
    draw();
    showSelected();
}

/* ---- the tooltip ------------------------------------------------------------------------------- */

const laneOf = (tenure) => groups[tenure.mutex].lanes.find((lane) => lane.worker === tenure.worker);
const shared = (a, b) => Math.min(a.to, b.to) - Math.max(a.from, b.from); /* below zero: they do not meet */
const showFindingText = ({kind, text}) => `${MARKS[kind]}: ${text}`;

function showFault(fault) {
    return fault.from === fault.to ? `${fault.what} at ${showTime(fault.from)}`
        : `${fault.what} from ${showTime(fault.from)} to ${showTime(fault.to)} (${showLength(fault.to - fault.from)})`;
}

function describeTenure(tenure) {
    const at = tenure.isMoment ? `seen once, at ${showTime(tenure.from)}`
        : `from ${showTime(tenure.from)} to ${showTime(tenure.to)}: ${showLength(tenure.to - tenure.from)}`;
    const overlaps = groups[tenure.mutex].overlaps.filter(({tenures}) => tenures.includes(tenure));
    const others = [...new Set(overlaps.flatMap(({tenures}) => tenures))].filter((t) => t !== tenure);
    const around = {from: tenure.from, to: tenure.to + AFTER_LAST};
    const faults = run.faults.filter((fault) => shared(fault, around) >= 0 && (fault.mutex < 0
        ? fault.worker === tenure.worker || fault.worker < 0 : fault.mutex === tenure.mutex));
    return [
        `${showWorker(tenure.worker)} owned mutex ${tenure.mutex}`,
        `token ${tenure.token}`,
        at,
        `end: ${howEnded(tenure)}`,
        ...others.map((t) => `✗ at the same time as ${showWorker(t.worker)}, token ${t.token}, for ` +
            `${showLength(shared(t, tenure))}`),
        ...run.findings.filter((f) => f.token === tenure.token && f.mutex === tenure.mutex).map(showFindingText),
        ...faults.map((fault) => `fault: ${showFault(fault)}`),
    ];
}

/* The tenure at a point: among those that are near, first one that is wrong, then the nearest. */
function findTenure(lane, x) {
    let best = null, least = NEAR + 1, count = 0;
    for (const tenure of visibleTenures(lane)) {
        const distance = Math.max(0, toX(tenure.from) - x, x - toX(tenure.to));
        const rank = distance - (distance <= NEAR && tenure.wrong ? NEAR : 0);
        if (distance < 1)
            count++;
        if (rank < least)
            [best, least] = [tenure, rank];
    }
    return {tenure: best, count};
}

function describePoint(x, y) {
    const isNear = (span) => toX(span.from) - NEAR <= x && x <= toX(span.to) + NEAR;
    const showFaults = (faults) => {
        const near = faults.filter(isNear);
        return near.slice(0, LINES_MAX).map(showFault)
            .concat(near.length > LINES_MAX ? `and ${near.length - LINES_MAX} more: zoom in` : []);
    };
    const group = [...groups, faultGroup].find((g) => y >= g.y && y < g.bottom);
    const lane = group?.lanes.find((l) => y >= l.y && y < l.y + size.laneHeight);
    if (!group || (group === faultGroup && !lane))
        return [];
    if (!lane)
        return group.findings.filter((f) => isNear({from: f.at, to: f.at})).map(showFindingText)
            .concat(showFaults(group.faults));
    const {tenure, count} = findTenure(lane, x);
    if (tenure)
        return describeTenure(tenure).concat(count > 1 ? `one of ${count} here: zoom in` : []);
    return showFaults(lane.worker < 0 ? globalFaults : lane.faults.concat(globalFaults));
}

function showTip(lines, x, y) {
    tip.hidden = lines.length === 0;
    tip.replaceChildren(...lines.map((line) => make("p", line)));
    const isRight = x + 20 + tip.offsetWidth > size.width;
    tip.style.left = `${Math.max(0, isRight ? x - 14 - tip.offsetWidth : x + 14)}px`;
    tip.style.top = `${y + 14}px`;
}

function showSelected() {
    const lane = state.selected && laneOf(state.selected);
    if (lane)
        showTip(describeTenure(state.selected), Math.max(size.gutter, toX(state.selected.from)),
            lane.y + size.laneHeight);
    else if (state.finding)
        showTip([showFindingText(state.finding)], toX(state.finding.at), groups[state.finding.mutex].y);
    else
        tip.hidden = true;
}

function select(step) {
    const first = inOrder.findIndex((tenure) => tenure.from >= state.from);
    const next = state.selected === null ? first : inOrder.indexOf(state.selected) + step;
    state.selected = inOrder[Math.max(0, Math.min(next, inOrder.length - 1))] ?? null;
    const {from, to} = state.selected ?? state;
    if (from < state.from || to > state.to)
        setWindow((from + to) / 2 - (state.to - state.from) / 2, (from + to) / 2 + (state.to - state.from) / 2);
    draw();
    showSelected();
}

/* ---- keyboard and pointer ---------------------------------------------------------------------- */

const KEYS = {
    "+": () => zoom(1 / ZOOM), "=": () => zoom(1 / ZOOM), "-": () => zoom(ZOOM), "−": () => zoom(ZOOM),
    ArrowLeft: () => pan(-STEP), ArrowRight: () => pan(STEP), Home: () => setWindow(whole.from, whole.to),
    ArrowUp: () => select(-1), ArrowDown: () => select(1),
    Escape: () => (state.selected = state.finding = null),
};

function onKey(event) {
    const act = event.ctrlKey || event.altKey || event.metaKey ? null : KEYS[event.key];
    if (!act)
        return;
    event.preventDefault();
    act();
    draw();
    showSelected();
}

/* Where nothing changes any more, the page scrolls on. */
function onWheel(event) {
    const x = event.clientX - canvas.getBoundingClientRect().left;
    const isPan = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const lines = (isPan ? event.deltaX || event.deltaY : event.deltaY) * (event.deltaMode === 1 ? 16 : 1);
    if (isPan ? pan(lines / 1000) : zoom(1.0015 ** lines, toTime(Math.max(size.gutter, x))))
        event.preventDefault();
    tip.hidden = true;
}

/* Dragging over a span shows it; a click selects. */
function onPointer(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    if (event.type === "pointerdown" && x >= size.gutter) {
        canvas.setPointerCapture(event.pointerId);
        state.drag = {from: x, to: x};
    } else if (event.type === "pointermove" && state.drag) {
        state.drag.to = x;
    } else if (event.type === "pointermove") {
        showTip(describePoint(x, y), x, y);
        return;
    } else if (event.type === "pointerup" && state.drag) {
        const {from, to} = state.drag;
        const lane = lanes.find((l) => y >= l.y && y < l.y + size.laneHeight);
        if (Math.abs(to - from) > NEAR)
            setWindow(toTime(Math.min(from, to)), toTime(Math.max(from, to)));
        else
            state.selected = lane ? findTenure(lane, x).tenure : null;
        state.drag = null;
    } else if (event.type === "pointercancel") {
        state.drag = null;
    }
    drawLater();
}

/* The middle of the window follows the pointer. */
function onOverview(event) {
    const box = overview.getBoundingClientRect();
    if (event.type === "pointerdown")
        overview.setPointerCapture(event.pointerId);
    else if (event.buttons !== 1)
        return;
    const centre = (event.clientX - box.left) / box.width * whole.to, half = (state.to - state.from) / 2;
    setWindow(centre - half, centre + half);
}

function onResize() {
    size.width = canvas.clientWidth;
    size.gutter = size.width > 700 ? 200 : 40;
    layOut();
    canvas.style.height = `${size.height}px`;
    size.scale = devicePixelRatio;
    canvas.width = Math.round(size.width * size.scale);
    canvas.height = Math.round(size.height * size.scale);
    overview.width = overview.clientWidth;
    overviewPicture = null;
    readColours();
    draw();
}

/* The window may move to a screen with other pixels; a query tells of one change only. */
function watchScale() {
    const query = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    query.addEventListener("change", () => (watchScale(), onResize()), {once: true});
}

canvas.addEventListener("keydown", onKey);
canvas.addEventListener("wheel", onWheel, {passive: false});
for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel"])
    canvas.addEventListener(type, onPointer);
canvas.addEventListener("pointerleave", () => showSelected());
canvas.addEventListener("blur", () => (tip.hidden = true));
overview.addEventListener("pointerdown", onOverview);
overview.addEventListener("pointermove", onOverview);
for (const [id, key] of [["zoom-in", "+"], ["zoom-out", "-"], ["earlier", "ArrowLeft"], ["later", "ArrowRight"],
    ["all", "Home"]])
    byId(id).addEventListener("click", KEYS[key]);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onResize);
new ResizeObserver(onResize).observe(byId("plot"));
watchScale();
onResize();
