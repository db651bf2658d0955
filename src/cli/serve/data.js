/* data.js: what is known of the store, and how it comes here. list.js and detail.js, which come after it, show it.
 *
 * Changes come as server-sent events, at most some times a second. After each (re)connection everything is read
 * anew, page by page; what changes meanwhile has a greater number than what was read, and wins.
 * Names, ids and notes were chosen by others: they go in as text, never as markup. */
"use strict";

const ROWS_MAX = 100000, TENURES_MAX = 20000;
const TENURES_EACH = 400;     /* of one mutex; older ones are in its details */
const LEASES_MS = 5000;       /* so often the leases of the rows in sight are asked for */
const HIDDEN_MS = 30000;      /* nobody looks: the connection is closed */
const LONGEST_SPAN = 24 * 3600e3;
const LOSSES = new Set(["expired", "evicted", "stalled"]);
const WHY = {
    released: "its owner released it", expired: "it could not be renewed in time",
    evicted: "an operator ended it", stalled: "its owner reported no progress",
};

const byId = (id) => document.getElementById(id);
const mutexes = new Map();    /* by name: what is owned, waited for, or has tenures in the time shown */
const link = {source: null, clock: 0, load: 0, hidden: 0, isUp: false, storeState: null};
const view = {span: 3600e3, name: "1 h", loadedSpan: 0};

const now = () => Date.now() + link.clock;

function make(tag, text, classes = "") {
    const element = document.createElement(tag);
    element.textContent = text;
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

function showTime(ms) {
    return Math.abs(now() - ms) < 20 * 3600e3 ? ofDay.format(ms) : ofYear.format(ms);
}

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
            waiters: null, note: null, change: -1, tenures: [], load: 0, version: 0, lower: name.toLowerCase()};
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
        all.shift();
    entry.version++;
    changed.any = true;
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
    const answer = await fetch(`${path}?${query}`);
    if (!answer.ok)
        throw new Error(`${path}: ${answer.status}`);
    const read = await answer.json();
    link.clock = read.now_ms - Date.now();
    return read;
}

async function loadTenures(span, mutex = null, most = TENURES_MAX) {
    let before = null, count = 0;
    do {
        const read = await ask("/api/history", {since: `${Math.round(span / 1000)}s`, before, mutex});
        read.tenures.forEach(takeTenure);
        count += read.tenures.length;
        before = read.next;
        schedule();
    } while (before !== null && count < most);
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

async function loadAll() {
    try {
        if (await loadMutexes())
            await loadTenures(view.loadedSpan = view.span);
    } catch (error) {
        showLive(false, "reading again …");
        setTimeout(() => link.isUp && loadAll(), 2000);
    }
    schedule();
}

/* The leases of what is in sight: so many names as fit into a request. */
async function askLeases(names) {
    let group = [], length = 0;
    const askGroup = async () => {
        while (group.length > 0) {
            const read = await ask("/api/mutexes", {names: group.join("\n")});
            read.mutexes.forEach((row) => mutexes.has(row.mutex) && takeRow(row, 0));
            group = read.next === null ? [] : group.slice(group.indexOf(read.next) + 1);
        }
        length = 0;
    };
    for (const name of names) {
        group.push(name);
        length += encodeURIComponent(name).length + 3;
        if (length > 4000)
            await askGroup();
    }
    await askGroup();
    schedule();
}

function showLive(isUp, text) {
    byId("live").textContent = text;
    byId("live").className = isUp ? "on" : "off";
}

function takeStore(state) {
    const banner = byId("banner");
    link.storeState = state;
    banner.hidden = state.answers;
    if (!state.answers)
        banner.textContent = `The store has not answered since ${showTime(state.since_ms)}: what is shown may be old. ${state.why}`;
}

function takeHello(hello) {
    link.clock = hello.now_ms - Date.now();
    link.isUp = true;
    byId("store").textContent = hello.store;
    byId("store").title = `${hello.store} · simba ${hello.version}` +
        (hello.is_recorded ? " · recorded into a file" : " · kept in memory");
    document.title = `simba · ${hello.store}`;
    takeStore(hello.store_state);
    showLive(true, "live");
    loadAll();
}

function connect() {
    const source = link.source = new EventSource("/events");
    const on = (name, take) => source.addEventListener(name, (event) => {
        take(JSON.parse(event.data));
        schedule();
    });
    on("hello", takeHello);
    on("store", takeStore);
    on("reset", loadAll);
    on("change", (change) => {
        link.clock = change.now_ms - Date.now();
        change.mutexes.forEach((row) => takeRow(row, link.load));
        change.tenures.forEach(takeTenure);
    });
    source.onerror = () => {
        link.isUp = false;
        showLive(false, "connecting again …");
        if (source.readyState === EventSource.CLOSED && link.source === source) /* refused: it does not come again by itself */
            setTimeout(() => link.source === source && connect(), 5000);
    };
}

/* A page that nobody sees costs nobody anything. */
function followVisibility() {
    clearTimeout(link.hidden);
    if (document.hidden) {
        link.hidden = setTimeout(() => {
            link.source?.close();
            link.source = null;
            link.isUp = false;
            showLive(false, "paused");
        }, HIDDEN_MS);
    } else if (link.source === null) {
        connect();
    }
}
