/* data.js: what is known of the store, and how it comes here. list.js and detail.js, which come after it, show it.
 *
 * Changes come as server-sent events, at most some times a second. After each (re)connection everything is read
 * anew, page by page; what changes meanwhile has a greater number than what was read, and wins. Numbers of another
 * process of the server say nothing: its epoch tells it.
 * The server says something every five seconds. What is not live is said to be old, and its clocks stand still.
 * Names, ids and notes were chosen by others: they go in as text, never as markup. */
"use strict";

const ROWS_MAX = 100000, TENURES_MAX = 20000;
const TENURES_EACH = 400;     /* of one mutex; what is older is said not to be loaded */
const ANSWER_MS = 20000;      /* then a request has failed */
const SILENT_MS = 12000;      /* no event for so long: the server hangs, or the network is gone */
const LEASES_MS = 5000;       /* so often the leases of the rows in sight are asked for */
const HIDDEN_MS = 30000;      /* nobody looks: the connection is closed */
const LONGEST_SPAN = 24 * 3600e3;
const LOSSES = new Set(["expired", "evicted"]);
const WHY = {
    released: "its owner released it", expired: "it could not be renewed in time", evicted: "an operator ended it",
};
/* What moves a cursor or turns the direction of text: as is_unsafe_character() of the command. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const byId = (id) => document.getElementById(id);
const mutexes = new Map();    /* by name: what is owned, waited for, or has tenures in the time shown */
/* asOf: of what is not live, the time of the server for which it holds. isBehind: loading failed, and is repeated. */
const link = {source: null, clock: 0, load: 0, hidden: 0, isUp: false, wasUp: false, isTried: false, isPaused: false, isBehind: false,
    isAsking: false, epoch: null, heardAt: 0, triedAt: 0, asOf: Date.now(), storeState: {answers: true}, figures: [], knownSince: 0, gaps: [],
    isLoaded: false}; /* isLoaded: all mutexes were read once; until then it is not known how many are owned */
/* from: what ended since then is loaded, of all mutexes. */
const view = {span: 3600e3, name: "1 h", loadedSpan: 0, from: Infinity};

const isLive = () => link.isUp && link.storeState.answers;
const now = () => isLive() ? Date.now() + link.clock : link.asOf;

const shown = (text) => String(text).replace(UNSAFE, "\ufffd");

function make(tag, text, classes = "") {
    const element = document.createElement(tag);
    element.textContent = shown(text);
    element.className = classes;
    return element;
}

/* ---- texts ------------------------------------------------------------------------------------ */

function showDuration(ms) {
    const s = Math.max(0, Math.floor(ms / 1000)), two = (n) => String(n).padStart(2, "0");
    if (s < 10)
        return `${(Math.max(0, ms) / 1000).toFixed(1)}s`;
    if (s < 60)
        return `${s}s`;
    if (s < 3600)
        return `${Math.floor(s / 60)}m${two(s % 60)}s`;
    if (s < 86400)
        return `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`;
    return `${Math.floor(s / 86400)}d${two(Math.floor(s / 3600) % 24)}h`;
}

const ofDay = new Intl.DateTimeFormat([], {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"});
const ofYear = new Intl.DateTimeFormat([], {dateStyle: "medium", timeStyle: "medium", hourCycle: "h23"});
const withZone = new Intl.DateTimeFormat([], {hour: "numeric", timeZoneName: "short"});

function showTime(ms) {
    return Math.abs(now() - ms) < 20 * 3600e3 ? ofDay.format(ms) : ofYear.format(ms);
}

const zoneOf = (ms) => withZone.formatToParts(ms).find((part) => part.type === "timeZoneName").value;

function endOf(tenure) {
    if (tenure.state === "held")
        return "owned now";
    return tenure.state === "unseen" ? "its end was not seen" : WHY[tenure.reason] ?? tenure.reason;
}

const kindOf = (tenure) => tenure.state === "held" ? "on" : tenure.state === "unseen" ? "unseen" : tenure.reason;
const endTime = (tenure) => tenure.state === "held" ? now() : tenure.ended_ms ?? tenure.last_seen_ms;

/* ---- what is known ---------------------------------------------------------------------------- */

function entryOf(name) {
    let entry = mutexes.get(name);
    if (!entry) {
        entry = {mutex: name, state: "free", holder: null, token: null, began_ms: null, began_known: false, until_ms: null,
            waiters: null, note: null, change: -1, tenures: [], cutAt: 0, ownFrom: Infinity, ownLoad: 0, load: 0, version: 0, lower: name.toLowerCase()};
        mutexes.set(name, entry);
        changed.rows = true;
    }
    return entry;
}

/* What was drawn of it is old from now on. */
const changed = {rows: true, any: true};

function takeRow(row, load) {
    const entry = entryOf(row.mutex);
    entry.load = Math.max(entry.load, load);
    if (row.change < entry.change)
        return;
    if (entry.state !== row.state || entry.holder !== row.holder || entry.waiters !== row.waiters || entry.note !== row.note)
        changed.rows = true;
    Object.assign(entry, row);
    entry.search = `${entry.lower}\n${(row.holder ?? "").toLowerCase()}\n${(row.note ?? "").toLowerCase()}`;
    entry.version++;
    changed.any = true;
}

const isSame = (a, b) => a.token === b.token && a.holder === b.holder && Math.abs(a.began_ms - b.began_ms) < 5;

/* They come in the order in which they ended, or the other way round. */
function takeTenure(tenure) {
    const entry = entryOf(tenure.mutex), all = entry.tenures;
    let at = all.length;
    while (at > 0 && all[at - 1].began_ms > tenure.began_ms)
        at--;
    if (all.slice(Math.max(0, at - 3), at + 3).some((other) => isSame(other, tenure)))
        return;
    all.splice(at, 0, tenure);
    if (all.length > TENURES_EACH)
        entry.cutAt = Math.max(entry.cutAt, endTime(all.shift()));
    entry.version++;
    changed.any = true;
}

/* Since when all tenures of a mutex are there. */
function knownFrom(entry) {
    const loaded = entry.ownLoad === link.load ? Math.min(entry.ownFrom, view.from) : view.from;
    return Math.max(loaded, entry.cutAt, link.knownSince);
}

/* Of a mutex, with the one that is on, the oldest first. */
function tenuresOf(entry) {
    if (entry.holder === null)
        return entry.tenures;
    return [...entry.tenures, {mutex: entry.mutex, state: "held", holder: entry.holder, token: entry.token,
        began_ms: entry.began_ms, began_known: entry.began_known, note: entry.note}];
}

/* What nobody owns, waits for, or owned in the time shown goes. */
function forgetOld() {
    const oldest = now() - LONGEST_SPAN;
    for (const entry of mutexes.values()) {
        while (entry.tenures.length > 0 && endTime(entry.tenures[0]) < oldest)
            entry.tenures.shift();
        if (entry.state === "free" && !entry.waiters && entry.tenures.length === 0) {
            mutexes.delete(entry.mutex);
            changed.rows = true;
        }
    }
}

/* ---- from the server -------------------------------------------------------------------------- */

async function ask(path, parameters) {
    const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== null));
    const answer = await fetch(`${path}?${query}`, {signal: AbortSignal.timeout(ANSWER_MS)});
    if (!answer.ok)
        throw new Error(`${path}: ${answer.status}`);
    const read = await answer.json();
    if (read.epoch !== link.epoch)
        throw new Error("the server began anew: its first event is to come");
    link.clock = read.now_ms - Date.now();
    link.figures = read.figures ?? link.figures;
    return read;
}

/* Since when all that ended is there now. */
async function loadTenures(span, mutex = null, most = TENURES_MAX) {
    const since = now() - span;
    let before = null, count = 0;
    do {
        const read = await ask("/api/history", {since: `${Math.round(span / 1000)}s`, before, mutex});
        read.tenures.forEach(takeTenure);
        link.knownSince = read.known_since_ms ?? 0;
        if (mutex === null && before === null)
            link.gaps = read.gaps ?? [];
        count += read.tenures.length;
        before = read.next;
        schedule();
    } while (before !== null && count < most);
    return before === null ? since : parseInt(before, 10);
}

async function loadMutexes() {
    const load = ++link.load;
    let after = null, count = 0;
    do {
        const read = await ask("/api/mutexes", {after});
        if (load !== link.load)
            return false;
        read.mutexes.forEach((row) => takeRow(row, load));
        takeStore(read.store_state);
        count += read.mutexes.length;
        after = read.next;
        schedule();
    } while (after !== null && count < ROWS_MAX);
    for (const entry of mutexes.values()) { /* what has ended while we were not told */
        if (entry.load < load && entry.state !== "free") {
            Object.assign(entry, {state: "free", holder: null, token: null, began_ms: null, until_ms: null, waiters: null,
                note: null});
            entry.version++;
            changed.rows = true;
        }
    }
    return true;
}

async function loadSpan() {
    const span = view.loadedSpan = view.span, from = await loadTenures(span);
    if (span === view.loadedSpan)
        view.from = from;
}

/* Until it succeeds, or the connection is lost: then the next one loads. */
async function loadAll() {
    const load = link.load + 1;
    try {
        if (await loadMutexes()) {
            link.isLoaded = true;
            await loadSpan();
        }
        if (load === link.load)
            link.isBehind = false;
    } catch (error) {
        link.isBehind = link.isBehind || load === link.load;
        setTimeout(() => link.isUp && load === link.load && loadAll(), 2000);
    }
    showLink();
    schedule();
}

/* The leases of what is in sight: so many names as fit into a request. A name with a line end cannot be asked for: between names
 * there is one. */
async function askLeases(names) {
    const groups = [[]];
    let length = 0;
    for (const name of names.filter((one) => !one.includes("\n"))) {
        const more = encodeURIComponent(name).length + 3;
        if (length + more > 4000) {
            groups.push([]);
            length = 0;
        }
        groups.at(-1).push(name);
        length += more;
    }
    for (let group of groups) {
        do {
            const read = await ask("/api/mutexes", {names: group.join("\n")});
            read.mutexes.forEach((row) => mutexes.has(row.mutex) && takeRow(row, 0));
            group = read.next === null ? [] : group.slice(group.indexOf(read.next) + 1);
        } while (group.length > 0);
    }
    schedule();
}

/* One question at a time. What fails is repeated by loading everything. */
async function askNow(question) {
    if (!link.isUp || link.isAsking || link.isBehind)
        return;
    link.isAsking = true;
    await question().catch(() => link.isUp && loadAll());
    link.isAsking = false;
}

/* ---- whether it is live ----------------------------------------------------------------------- */

function linkTexts() {
    const time = `${showTime(link.asOf)} ${zoneOf(link.asOf)}`;
    if (link.isPaused)
        return ["paused", ""];
    if (!link.isUp)
        return [link.wasUp ? "connecting again …" : "connecting …", !link.isTried ? "" : !link.wasUp ? "No answer from simba serve."
            : `No answer from simba serve since ${time}: all is shown as of then.`];
    if (!link.storeState.answers)
        return ["no answer of the store", `The store has not answered since ${time}. All is shown as of then. Why: ${link.storeState.why}`];
    return [link.isBehind ? "reading again …" : link.isLoaded ? "live" : "reading …", (link.storeState.unrecorded ?? "").replace(/^./, (first) => first.toUpperCase())];
}

function showLink() {
    const [text, warning] = linkTexts(), live = byId("live"), banner = byId("banner");
    if (live.textContent !== text)
        live.textContent = text;
    live.className = text === "live" ? "on" : "off";
    if (banner.textContent !== warning)
        banner.textContent = shown(warning);
    banner.hidden = warning === "";
    document.body.classList.toggle("is-old", link.wasUp && !isLive());
}

function takeStore(state) {
    link.storeState = state;
    if (!state.answers)
        link.asOf = state.since_ms;
    showLink();
}

/* What is known stays to be seen, as of when the server was last heard. */
function loseLink() {
    if (isLive())
        link.asOf = link.heardAt + link.clock;
    link.isUp = false;
    link.isTried = true;
    showLink();
    schedule();
}

function takeHello(hello) {
    link.clock = hello.now_ms - Date.now();
    if (link.epoch !== hello.epoch) {
        for (const entry of mutexes.values())
            entry.change = -1;
    }
    link.epoch = hello.epoch;
    link.isUp = link.wasUp = link.isTried = true;
    byId("store").textContent = shown(hello.store);
    byId("store").title = shown(`${hello.store} · simba ${hello.version}` +
        (hello.is_recorded ? " · recorded into a file" : " · kept in memory"));
    document.title = shown(`simba · ${hello.store}`);
    takeStore(hello.store_state);
    loadAll();
}

function takeChange(change) {
    link.clock = change.now_ms - Date.now();
    if (!link.storeState.answers)
        link.asOf = change.now_ms;
    change.mutexes.forEach((row) => takeRow(row, link.load));
    change.tenures.forEach(takeTenure);
}

function connect() {
    link.source?.close();
    link.triedAt = Date.now();
    const source = link.source = new EventSource("/events");
    const on = (name, take) => source.addEventListener(name, (event) => {
        link.heardAt = Date.now();
        take(JSON.parse(event.data));
        schedule();
    });
    on("hello", takeHello);
    on("store", takeStore);
    on("reset", loadAll);
    on("change", takeChange);
    on("alive", () => {});
    source.onerror = () => link.source === source && loseLink();
}

/* Every second. A connection that was refused does not come again by itself either. */
function watchLink() {
    if (link.source !== null && Math.abs(Date.now() - Math.max(link.heardAt, link.triedAt)) > SILENT_MS) {
        loseLink();
        connect();
    }
}

/* A page that nobody sees costs nobody anything. */
function followVisibility() {
    clearTimeout(link.hidden);
    if (document.hidden) {
        link.hidden = setTimeout(() => {
            link.source?.close();
            link.source = null;
            link.isPaused = true;
            loseLink();
        }, HIDDEN_MS);
    } else if (link.source === null) {
        link.isPaused = link.isTried = false;
        connect();
        showLink();
    }
}
