/* page.js: what the page says in words and figures. timeline.js, which comes after it, draws.
 *
 * Texts of the run were chosen by users: they go in as text, never as markup. */
"use strict";

const REASONS = {
    0: "not released: its lease ran out, or it was evicted",
    2: "its owner released it",
    3: "it could not be renewed in time",
    4: "the store said that it was over",
    5: "its owner reported no progress",
};
const RELEASED = 2;
const MARKS = {wrong: "✗ wrong", late: "! late", limit: "! known limit"};
const SHORTEST_SHOWN = 1e4; /* ns; shorter ones, also those below zero, are in the first column of a histogram */
const ROWS_SHOWN = 200;

/* ---- the run, and how it is put in words ------------------------------------------------------- */

const byId = (id) => document.getElementById(id);

function make(tag, text, classes = "") {
    const element = document.createElement(tag);
    element.textContent = text;
    element.className = classes;
    return element;
}

/* Lists come as rows of values, with the names of the columns: each row becomes an object. */
function readRun() {
    const read = JSON.parse(byId("run").textContent);
    for (const name of ["tenures", "takeovers", "faults", "findings"]) {
        const {columns, rows} = read[name];
        read[name] = rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]])));
    }
    for (const tenure of read.tenures) { /* asked once: it was owned at a moment between the two */
        tenure.isMoment = tenure.to <= tenure.from;
        if (tenure.isMoment)
            [tenure.from, tenure.to] = [tenure.to, tenure.from];
    }
    return read;
}
const run = readRun();

const showTime = (ns) => `${(ns / 1e9).toFixed(4)} s`;

function showLength(ns) {
    const [size, unit] = ns < 1e6 ? [1e3, "µs"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    const value = ns / size;
    return `${value >= 100 ? Math.round(value) : Number(value.toPrecision(3))} ${unit}`;
}

function showWorker(worker) {
    if (worker < 0 || worker >= run.workers.length)
        return worker === run.workers.length ? "operator" : "all workers";
    return `worker ${worker}${run.workers[worker] ? ` (${run.workers[worker]})` : ""}`;
}

function howEnded(tenure) {
    if (tenure.reason !== 0 || tenure.left >= 0)
        return REASONS[tenure.reason || RELEASED] ?? `reason ${tenure.reason}`;
    const death = run.faults.find(({kind, worker, life, from}) => (kind === "kill" || kind === "crash") &&
        worker === tenure.worker && life === tenure.life && from < tenure.to + run.lease_ms * 1e6);
    return death ? `its process ${death.kind === "kill" ? "was killed" : death.what}` : REASONS[0];
}

function largest(values) {
    return values.reduce((a, b) => Math.max(a, b), -Infinity);
}

/* ---- the head ---------------------------------------------------------------------------------- */

function counted(count, noun) {
    return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : noun.endsWith("x") ? "es" : "s"}`;
}

/* Each kill is a fault; that the process ended is no other. A crash is one. */
const struck = run.faults.filter((fault) => fault.kind === "fault" || fault.kind === "crash");

function findingsOf(kind) {
    return run.findings.filter((finding) => finding.kind === kind).length;
}

/* [class, mark and word, sentence] */
function result() {
    const setting = `${counted(run.workers.length, "worker")} competed for ` +
        `${counted(run.mutexes, "mutex")} for ${showLength(run.length)}, while ` +
        `${counted(struck.length, "fault")} struck`;
    const wrong = findingsOf("wrong"), late = findingsOf("late"), limits = findingsOf("limit");
    if (wrong > 0)
        return ["bad", "✗ FAILED", `${setting}: a promise was broken ${counted(wrong, "time")}` +
            `${late > 0 ? `, and ${counted(late, "time")} something came later than its bound` : ""}.`];
    const kept = limits > 0
        ? `all promises were kept, except ${counted(limits, "time")} under a fault that the documents exclude`
        : "no two ever owned the same mutex at once, and each token was greater than the one before";
    if (late > 0)
        return ["warn", "! LATE", `${setting}: ${kept}; but ${counted(late, "time")} something came later than ` +
            "its bound."];
    if (run.tenures.length === 0)
        return ["warn", "? NOTHING SEEN", `${setting}: nobody ever owned a mutex, so nothing is shown.`];
    return ["good", "✓ PASSED", `${setting}: ${kept}.`];
}

function addTerm(list, term, value) {
    const row = list.appendChild(document.createElement("div"));
    row.append(make("dt", term), make("dd", value));
    return row.lastChild;
}

function faultsByKind() {
    const counts = new Map();
    for (const fault of struck)
        counts.set(fault.what, (counts.get(fault.what) ?? 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]).map(([what, n]) => `${what} ${n.toLocaleString("en")} ×`).join(", ");
}

function fillHead() {
    const [colour, word, sentence] = result();
    byId("result").textContent = word;
    byId("result").className = colour;
    byId("sentence").textContent = sentence;
    document.title = `${word} – simba torture, ${run.store}`;
    const figures = {
        workers: run.workers.length, mutexes: run.mutexes, tenures: run.tenures.length,
        "hand-overs": run.takeovers.filter((t) => t.kind === "hand-over").length,
        takeovers: run.takeovers.filter((t) => t.kind === "takeover").length,
        faults: struck.length, "answers “I own it”": run.answers,
    };
    for (const [name, value] of Object.entries(figures))
        addTerm(byId("figures"), name, value.toLocaleString("en"));
    addTerm(byId("facts"), "store", run.store);
    addTerm(byId("facts"), "lease", `${run.lease_ms} ms: so long an owner that vanishes keeps the mutex`);
    addTerm(byId("facts"), "faults", faultsByKind() || "none");
    addTerm(byId("facts"), "machine", `ran, and the store answered, up to ${showLength(run.delay)} late: bounds allow for that`);
    addTerm(byId("facts"), "seed", run.seed);
    addTerm(byId("facts"), "again", "").append(make("code", run.command));
}

function fillFindings() {
    byId("findings").hidden = run.findings.length === 0;
    for (const finding of run.findings) {
        const button = make("button", "", finding.kind);
        const text = make("div", "");
        text.append(make("b", `${MARKS[finding.kind]}: `), finding.text);
        const tenure = finding.token === "0" ? "" : `, mutex ${finding.mutex}, token ${finding.token}`;
        const facts = `at ${showTime(finding.at)}, ${showWorker(finding.worker)}${tenure}`;
        button.append(text, make("div", facts, "facts"));
        button.addEventListener("click", () => showFinding(finding));
        byId("finding-list").appendChild(document.createElement("li")).append(button);
    }
}

/* ---- histograms -------------------------------------------------------------------------------- */

function svg(tag, attributes, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes))
        element.setAttribute(name, value);
    element.textContent = text;
    return element;
}

const isLate = (takeover) => takeover.bound > 0 && takeover.length > takeover.bound;

function describeWaits(takeovers) {
    const sorted = takeovers.map((takeover) => takeover.length).sort((a, b) => a - b);
    if (sorted.length === 0)
        return ["none"];
    const percentile = (share) => showLength(sorted[Math.floor(sorted.length * share)]);
    const bounded = takeovers.filter((takeover) => takeover.bound > 0).length;
    const late = takeovers.filter(isLate).length;
    return [
        `half within ${percentile(0.5)} (p50), 99 % within ${percentile(0.99)} (p99), longest ` +
            showLength(sorted.at(-1)),
        late > 0 ? `✗ ${late} of ${bounded} above their bound` : `✓ all ${bounded} within their bound`,
    ].concat(bounded === sorted.length ? []
        : `${sorted.length - bounded} without a bound (grey): faults kept everybody away`);
}

function drawHistogram(takeovers, width) {
    const height = 170, left = 8, right = 8, top = 30, bottom = 22;
    const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, height, role: "img"});
    const log = (length) => Math.log10(Math.max(length, SHORTEST_SHOWN));
    const bounds = [...new Set(takeovers.map((t) => t.bound).filter((bound) => bound > 0))];
    const logs = takeovers.map((t) => log(t.length)).concat(bounds.map(log));
    const from = Math.floor(-largest(logs.map((value) => -value)));
    const to = Math.max(Math.ceil(largest(logs)), from + 1), perDecade = to - from > 2 ? 5 : 10;
    const x = (value) => left + (value - from) / (to - from) * (width - left - right);
    const bins = Array.from({length: (to - from) * perDecade}, () => ({late: 0, free: 0, good: 0}));
    for (const t of takeovers) {
        const bin = Math.min(bins.length - 1, Math.floor((log(t.length) - from) * perDecade));
        bins[bin][isLate(t) ? "late" : t.bound > 0 ? "good" : "free"]++;
    }
    const most = largest(bins.map((bin) => bin.late + bin.free + bin.good));
    bins.forEach((bin, i) => {
        const x0 = x(from + i / perDecade), x1 = x(from + (i + 1) / perDecade);
        let y = height - bottom;
        for (const [name, count] of [["in-time", bin.good], ["unbound", bin.free], ["above", bin.late]]) {
            const size = count > 0 ? Math.max(3, count / most * (height - top - bottom)) : 0;
            y -= size;
            picture.append(svg("rect", {class: name, x: x0 + 0.5, y, width: x1 - x0 - 1, height: size}));
        }
        const sum = bin.late + bin.free + bin.good;
        if (sum > 0)
            picture.append(svg("text", {x: (x0 + x1) / 2, y: y - 3, "text-anchor": "middle",
                class: bin.late > 0 ? "above" : ""}, String(sum)));
    });
    picture.append(svg("path", {class: "axis", d: `M${left} ${height - bottom + 0.5}H${width - right}`}));
    for (let decade = from; decade <= to; decade++)
        picture.append(svg("text", {x: x(decade), y: height - 6, "text-anchor":
            decade === from ? "start" : decade === to ? "end" : "middle"}, showLength(10 ** decade)));
    for (const bound of bounds.length > 2 ? [Math.min(...bounds), Math.max(...bounds)] : bounds) {
        const end = x(log(bound)) > width / 2;
        picture.append(svg("path", {class: "bound", d: `M${x(log(bound))} 4V${height - bottom}`}),
            svg("text", {class: "bound-label", x: x(log(bound)) + (end ? -4 : 4), y: 12,
                "text-anchor": end ? "end" : "start"}, `bound ${showLength(bound)}`));
    }
    return picture;
}

function fillHistograms() {
    const kinds = [["hand-over", "Hand-overs: the owner left by itself"],
        ["takeover", "Takeovers: the owner was killed, stopped, cut off or evicted"]];
    byId("histograms").replaceChildren(...kinds.map(([kind, title]) => {
        const takeovers = run.takeovers.filter((t) => t.kind === kind);
        const figure = make("figure", ""), caption = make("figcaption", "");
        caption.append(make("b", title), ...describeWaits(takeovers).map((line) => make("span", line)));
        figure.append(caption);
        return figure;
    }));
    [...byId("histograms").children].forEach((figure, i) => {
        const takeovers = run.takeovers.filter((t) => t.kind === kinds[i][0]);
        if (takeovers.length > 0)
            figure.append(drawHistogram(takeovers, Math.max(200, figure.clientWidth - 26)));
    });
}

/* ---- tables ------------------------------------------------------------------------------------ */

/* Twenty thousand rows at once would be slow: a part of them, and buttons for the others. */
function fillTable(details, headings, rows, textsOf) {
    let first = 0;
    const body = make("div", ""), scroll = make("div", "", "scroll");
    const range = make("span", "");
    const show = (step) => {
        first = Math.max(0, Math.min(first + step, Math.floor((rows.length - 1) / ROWS_SHOWN) * ROWS_SHOWN));
        const part = rows.slice(first, first + ROWS_SHOWN);
        range.textContent = ` ${part.length === 0 ? 0 : first + 1} to ${first + part.length} of ${rows.length} `;
        const table = make("table", "");
        const line = (tag, texts) => {
            const row = document.createElement("tr");
            row.append(...texts.map((text) => make(tag, String(text))));
            return row;
        };
        table.append(line("th", headings), ...part.map((row) => line("td", textsOf(row))));
        scroll.replaceChildren(table);
    };
    const before = make("button", "previous"), next = make("button", "next");
    before.addEventListener("click", () => show(-ROWS_SHOWN));
    next.addEventListener("click", () => show(ROWS_SHOWN));
    body.append(before, range, next, scroll);
    details.addEventListener("toggle", () => details.childElementCount > 1 || (details.append(body), show(0)));
}

function fillTables() {
    fillTable(byId("tenure-table"), ["mutex", "worker", "token", "from", "to", "length", "end"], run.tenures,
        (t) => [t.mutex, showWorker(t.worker), t.token, showTime(t.from), showTime(t.to),
            showLength(t.to - t.from), howEnded(t)]);
    fillTable(byId("fault-table"), ["what", "whom", "from", "to"], run.faults, (f) =>
        [f.what, f.mutex < 0 ? showWorker(f.worker) : `mutex ${f.mutex}`, showTime(f.from), showTime(f.to)]);
}

fillHead();
fillFindings();
fillTables();
let histogramWidth = 0;
new ResizeObserver(([entry]) => {
    if (entry.contentRect.width !== histogramWidth) {
        histogramWidth = entry.contentRect.width;
        fillHistograms();
    }
}).observe(byId("waits"));
