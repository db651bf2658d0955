
/* list.js: the rows. Only those in sight are elements, and these are used again for others: ten thousand mutexes
 * cost as much as thirty. All that is drawn is drawn in one animation frame, however many changes have come. */

const grid = byId("grid"), scroller = byId("scroller"), sizer = byId("sizer"), tip = byId("tip"), search = byId("search");
const SORTED_MS = 300;        /* so often rows may change places */
const SPARE_ROWS = 4;         /* above and below what is in sight */
const LEAST_BAR = 2;          /* pixels */
const state = {rows: [], sort: "mutex", isDown: false, selected: null, open: null, isPending: false, sortedAt: 0,
    filter: "all", rowHeight: 34, tick: 0};
const pool = [];
let colours = {}, hatch = null;

/* ---- which rows, in which order --------------------------------------------------------------- */

const wasLost = (entry) => entry.tenures.some((t) => LOSSES.has(t.reason) && endTime(t) >= now() - view.span);
const FILTERS = {
    all: (entry) => entry.state !== "free" || entry.waiters > 0 || isRecent(entry),
    owned: (entry) => entry.state !== "free",
    waited: (entry) => entry.waiters > 0,
    lost: wasLost,
    free: (entry) => entry.state === "free" && isRecent(entry),
};
const KEYS = {
    mutex: (entry) => entry.mutex,
    holder: (entry) => entry.holder,
    token: (entry) => entry.token,
    held: (entry) => entry.began_ms && -entry.began_ms,
    waiters: (entry) => entry.waiters || null,
};

function isRecent(entry) {
    const last = entry.tenures[entry.tenures.length - 1];
    return last !== undefined && endTime(last) >= now() - view.span;
}

/* What has no value comes last, whichever way. */
function sortRows() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), key = KEYS[state.sort], way = state.isDown ? -1 : 1;
    const rows = [];
    for (const entry of mutexes.values()) {
        if (FILTERS[state.filter](entry) && words.every((word) => (entry.search ?? entry.lower).includes(word)))
            rows.push(entry);
    }
    const compare = (a, b) => a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b ? -1 : 1) * way;
    rows.sort((a, b) => compare(key(a), key(b)) || (a.mutex < b.mutex ? -1 : 1));
    state.rows = rows;
    state.sortedAt = performance.now();
    changed.rows = false;
    sizer.style.height = `${rows.length * state.rowHeight}px`;
    grid.setAttribute("aria-rowcount", rows.length + 1);
    const all = `${mutexes.size.toLocaleString("en")} ${mutexes.size === 1 ? "mutex" : "mutexes"}`;
    byId("shown").textContent = rows.length === mutexes.size ? all : `${rows.length.toLocaleString("en")} of ${all}`;
    const empty = byId("empty");
    empty.hidden = rows.length > 0;
    empty.textContent = mutexes.size > 0 ? "No mutex is like that." : "Nobody owns a mutex on this store.";
}

/* ---- drawing ---------------------------------------------------------------------------------- */

function readColours() {
    const style = getComputedStyle(document.documentElement), probe = document.body.appendChild(document.createElement("i"));
    probe.style.forcedColorAdjust = "none";
    for (const name of ["paper", "line", "dim", "on", "released", "expired", "evicted", "unseen", "unknown"]) {
        probe.style.color = `var(--${name})`; /* a colour of the system, too, comes as numbers */
        colours[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    const tile = document.createElement("canvas"), pen = tile.getContext("2d");
    tile.width = tile.height = 6;
    pen.strokeStyle = colours.unseen;
    pen.lineWidth = 2;
    pen.beginPath();
    for (const x of [-6, 0, 6]) {
        pen.moveTo(x, 6);
        pen.lineTo(x + 6, 0);
    }
    pen.stroke();
    hatch = pen.createPattern(tile, "repeat");
    state.rowHeight = parseFloat(style.getPropertyValue("--row"));
    document.querySelector(".head").style.marginRight = `${scroller.offsetWidth - scroller.clientWidth}px`;
    for (const key of document.querySelectorAll(".key"))
        drawKey(key);
}

/* To ask an element for its size makes the browser lay out the page. So it is asked once, and not for each row. */
function measureLanes() {
    const style = getComputedStyle(document.documentElement);
    state.lane = {width: byId("axis").clientWidth, height: parseFloat(style.getPropertyValue("--lane"))};
    for (const one of pool)
        one.drawn = "";
}

/* Sets the size of a canvas, clears it, and gives the pen, in CSS pixels. */
function penOf(canvas, {width, height} = {width: canvas.clientWidth, height: canvas.clientHeight}) {
    const scale = window.devicePixelRatio || 1;
    const wide = Math.round(width * scale), high = Math.round(height * scale), pen = canvas.getContext("2d");
    if (canvas.width !== wide || canvas.height !== high) {
        canvas.width = wide;
        canvas.height = high;
    }
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    return {pen, width, height};
}

const toX = (time, width) => (time - (now() - view.span)) / view.span * width;

/* A tenure has the colour and the shape of its end: who does not see one sees the other. What is on is higher, what expired
 * has a point at its end, what was evicted a bar with feet. */
function drawTenure(pen, kind, begin, end, width, height) {
    const inset = kind === "on" ? 1 : Math.round(height * .2), x = Math.min(end, LOSSES.has(kind) ? width - 4 : width);
    const from = Math.min(begin, x - LEAST_BAR);
    pen.fillStyle = kind === "unseen" ? hatch : colours[kind] ?? colours.unseen;
    pen.fillRect(from, inset, Math.max(LEAST_BAR, x - from - .5), height - 2 * inset);
    if (!LOSSES.has(kind))
        return;
    pen.fillRect(x - 1.5, 0, 3, height); /* whatever its length */
    if (kind === "evicted") {
        pen.fillRect(x - 4, 0, 8, 2.5);
        pen.fillRect(x - 4, height - 2.5, 8, 2.5);
    } else {
        pen.beginPath();
        pen.moveTo(x - 5, 0);
        pen.lineTo(x + 5, 0);
        pen.lineTo(x, height * .45);
        pen.fill();
    }
}

function drawUnknown(pen, from, to, height) {
    pen.fillStyle = colours.unknown;
    for (let x = from; x < to; x += 4)
        pen.fillRect(x, 0, Math.min(2, to - x), height);
}

/* While nobody recorded, it is not known that nobody owned it. */
function drawGaps(pen, known, width, height) {
    for (const [began, ended] of link.gaps) {
        const from = Math.max(known, toX(began, width)), to = Math.min(width, toX(ended, width));
        if (from >= to)
            continue;
        pen.clearRect(from, 0, to - from, height);
        drawUnknown(pen, from, to, height);
    }
}

function drawKey(canvas) {
    const {pen, width, height} = penOf(canvas);
    if (canvas.dataset.kind === "unknown")
        drawUnknown(pen, 0, width, height);
    else
        drawTenure(pen, canvas.dataset.kind, 0, width - (LOSSES.has(canvas.dataset.kind) ? 5 : 0), width, height);
}

/* Losses are drawn last, so that among many short tenures none of them is hidden. */
function drawLane(canvas, entry, size) {
    const {pen, width, height} = penOf(canvas, size), all = tenuresOf(entry);
    const known = Math.min(width, Math.max(0, toX(knownFrom(entry), width)));
    drawUnknown(pen, 0, known, height);
    pen.fillStyle = colours.line;
    pen.fillRect(known, height / 2 - .5, width - known, 1);
    drawGaps(pen, known, width, height);
    for (const isLossTurn of [false, true]) {
        for (const tenure of all) {
            const kind = kindOf(tenure), end = toX(endTime(tenure), width);
            if (LOSSES.has(tenure.reason) !== isLossTurn || end < 0)
                continue;
            drawTenure(pen, kind, Math.max(0, toX(tenure.began_ms, width)), end, width, height);
        }
    }
}

function drawAxis() {
    const {pen, width, height} = penOf(byId("axis")), steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720];
    const step = (steps.find((minutes) => minutes * 60e3 / view.span * width > 46) ?? 720) * 60e3;
    const zone = new Date(now()).getTimezoneOffset() * 60e3;
    pen.fillStyle = pen.strokeStyle = colours.dim;
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    for (let at = Math.ceil((now() - view.span - zone) / step) * step + zone; at < now(); at += step) {
        const x = toX(at, width), text = ofDay.format(at).slice(0, 5);
        pen.fillRect(x, height - 5, 1, 5);
        if (x > 16 && x < width - 18)
            pen.fillText(text, x - 15, height - 7);
    }
}

/* ---- rows ------------------------------------------------------------------------------------- */

const CELLS = ["name", "holder", "token", "held", "left", "waiters"];

function makeRow() {
    const element = make("div", "", "row"), one = {element, entry: null, drawn: "", texts: {}, cells: {}};
    element.setAttribute("role", "row");
    element.id = `row-${pool.length}`;
    for (const name of [...CELLS, "lane"]) {
        const cell = element.appendChild(make("span", "", name));
        cell.setAttribute("role", "gridcell");
        one.cells[name] = cell;
    }
    one.name = one.cells.name.appendChild(make("bdi", ""));
    one.id = one.cells.holder.appendChild(make("bdi", ""));
    one.note = one.cells.holder.appendChild(make("bdi", "", "note"));
    one.canvas = one.cells.lane.appendChild(document.createElement("canvas"));
    element.addEventListener("click", () => {
        select(one.entry, false);
        openDetail(one.entry);
    });
    one.cells.lane.addEventListener("pointermove", (event) => showTip(event, one));
    one.cells.lane.addEventListener("pointerleave", () => (tip.hidden = true));
    scroller.append(element);
    pool.push(one);
    return one;
}

/* Only what is new: most cells stay as they are from one second to the next. */
function setText(one, name, element, text) {
    if (one.texts[name] === text)
        return;
    one.texts[name] = text;
    element.textContent = shown(text);
}

function setTitle(one, cell, ...texts) {
    const text = texts.filter(Boolean).map(shown).join("\n");
    if (one.texts[`${cell.className}-title`] === text)
        return;
    one.texts[`${cell.className}-title`] = text;
    cell.title = text;
}

/* Of a lease that is over while its owner is seen to own: it was renewed since the store was last asked. */
function showLeft(entry) {
    if (entry.until_ms === null)
        return "–";
    return entry.until_ms > now() ? showDuration(entry.until_ms - now()) : isLive() ? "renewed" : "–";
}

function showWaiters(entry) {
    return entry.waiters !== null ? String(entry.waiters) : entry.state === "free" ? "" : "–";
}

function fillRow(one, entry, index) {
    const {element, cells} = one, isOn = entry.state !== "free";
    const y = index * state.rowHeight, isSelected = entry === state.selected;
    if (one.y !== y)
        element.style.transform = `translateY(${one.y = y}px)`;
    if (one.index !== index)
        element.setAttribute("aria-rowindex", (one.index = index) + 2);
    if (one.isSelected !== isSelected)
        element.setAttribute("aria-selected", one.isSelected = isSelected);
    const drawn = `${entry.version} ${state.tick} ${view.span} ${entry.mutex}`;
    if (one.drawn === drawn)
        return;
    one.drawn = drawn;
    one.entry = entry;
    element.className = `row is-${entry.state}`;
    const owner = isOn ? entry.holder : entry.waiters > 0 ? "nobody yet" : lastEnd(entry), note = isOn ? entry.note ?? "" : "";
    setText(one, "name", one.name, entry.mutex);
    setText(one, "holder", one.id, owner);
    setText(one, "note", one.note, note);
    setText(one, "token", cells.token, isOn && entry.token !== null ? String(entry.token) : "");
    setText(one, "held", cells.held, isOn ? (entry.began_known ? "" : "≥") + showDuration(now() - entry.began_ms) : "");
    setText(one, "left", cells.left, isOn ? showLeft(entry) : "");
    setText(one, "waiters", cells.waiters, showWaiters(entry));
    cells.waiters.className = `waiters ${entry.waiters > 0 ? "some" : ""}`;
    setTitle(one, cells.name, entry.mutex);
    setTitle(one, cells.holder, owner, note);
    drawLane(one.canvas, entry, state.lane);
}

function lastEnd(entry) {
    const last = entry.tenures[entry.tenures.length - 1];
    if (last === undefined)
        return "free";
    const how = last.state === "unseen" ? "end not seen" : last.reason;
    const [first] = showDuration(now() - endTime(last)).match(/^[0-9]+[.0-9]*./);
    return `free: ${how} ${first} ago`;
}

/* Each row that stays in sight keeps its element. */
function fillRows() {
    const height = state.rowHeight, first = Math.max(0, Math.floor(scroller.scrollTop / height) - SPARE_ROWS);
    const last = Math.min(state.rows.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / height) + SPARE_ROWS);
    const wanted = new Set(state.rows.slice(first, last)), used = new Map();
    for (const one of pool) {
        if (one.entry !== null && wanted.has(one.entry) && !used.has(one.entry))
            used.set(one.entry, one);
        else
            one.entry = null;
    }
    const spare = pool.filter((one) => one.entry === null);
    for (let i = first; i < last; i++) {
        const entry = state.rows[i], one = used.get(entry) ?? spare.pop() ?? makeRow();
        one.entry = entry;
        one.element.hidden = false;
        fillRow(one, entry, i);
    }
    for (const one of spare) {
        one.element.hidden = true;
        one.drawn = "";
    }
    const chosen = pool.find((one) => one.entry !== null && one.entry === state.selected);
    if (chosen)
        grid.setAttribute("aria-activedescendant", chosen.element.id);
    else
        grid.removeAttribute("aria-activedescendant");
}

function inSight() {
    return pool.filter((one) => one.entry !== null).map((one) => one.entry.mutex);
}

/* ---- figures ---------------------------------------------------------------------------------- */

function showFigures() {
    const counted = link.figures.find((one) => one.minutes * 60e3 === view.span), since = Math.max(link.knownSince, now() - view.span);
    let owned = 0, waiting = 0, isWaitKnown = mutexes.size === 0;
    for (const entry of mutexes.values()) {
        owned += entry.state !== "free";
        isWaitKnown = isWaitKnown || entry.waiters !== null;
        waiting += entry.waiters ?? 0;
    }
    byId("term-ended").textContent = `ended in ${view.name}`;
    byId("term-lost").textContent = `lost in ${view.name}`;
    byId("figure-owned").textContent = link.isLoaded ? owned.toLocaleString("en") : "–";
    byId("figure-waiting").textContent = link.isLoaded && isWaitKnown ? waiting.toLocaleString("en") : "–";
    for (const element of [byId("figure-waiting").parentElement, document.querySelector(".head .waiters")])
        element.title = isWaitKnown ? "how many wait" : "this store does not know who waits";
    byId("figure-ended").textContent = counted?.ended.toLocaleString("en") ?? "–";
    byId("figure-lost").textContent = counted?.lost.toLocaleString("en") ?? "–";
    byId("figure-lost").parentElement.className = counted?.lost > 0 ? "bad" : "";
    byId("term-lost").parentElement.title = `expired or evicted since ${showTime(since)} ${zoneOf(since)}`;
    byId("zone").textContent = `times in ${zoneOf(now())}`;
    const waited = document.querySelector("[value=waited]");
    waited.disabled = !isWaitKnown;
    waited.textContent = isWaitKnown ? "waited for" : "waited for: this store does not know";
}

/* ---- one frame -------------------------------------------------------------------------------- */

function draw() {
    state.isPending = false;
    if (changed.rows && performance.now() - state.sortedAt >= SORTED_MS)
        sortRows();
    fillRows();
    showDetail();
    if (changed.rows)
        setTimeout(schedule, SORTED_MS);
    changed.any = false;
}

function schedule() {
    if (!state.isPending) {
        state.isPending = true;
        requestAnimationFrame(draw);
    }
}

function tickOn() {
    state.tick++;
    if (state.tick % 60 === 0)
        forgetOld();
    watchLink();
    if (state.sort === "held" || state.filter !== "all")
        changed.rows = true;
    showFigures();
    drawAxis();
    schedule();
}
