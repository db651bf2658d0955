
/* detail.js: one mutex, the keyboard, and how it all begins. */

const detail = byId("detail");
const TENURES_SHOWN = 100;

/* ---- what the pointer is on ------------------------------------------------------------------- */

function describe(tenure) {
    const held = (tenure.began_known && tenure.state !== "unseen" ? "" : "at least ") +
        showDuration(endTime(tenure) - tenure.began_ms);
    const began = tenure.began_known ? `from ${showTime(tenure.began_ms)}` : `before ${showTime(tenure.began_ms)}`;
    const end = tenure.state === "held" ? "" : tenure.state === "unseen"
        ? `, last seen ${showTime(tenure.last_seen_ms)}` : ` to ${showTime(tenure.ended_ms)}`;
    return {held, time: `${began}${end} ${zoneOf(tenure.began_ms)}`, end: endOf(tenure)};
}

function showTip(event, one) {
    const box = one.canvas.getBoundingClientRect(), x = event.clientX - box.left, near = 4;
    const tenure = tenuresOf(one.entry).findLast((t) => toX(t.began_ms, box.width) - near <= x &&
        Math.max(toX(endTime(t), box.width), toX(t.began_ms, box.width) + LEAST_BAR) + near >= x);
    tip.hidden = tenure === undefined;
    if (tip.hidden)
        return;
    const {held, time, end} = describe(tenure), frame = grid.getBoundingClientRect(), who = make("p", "");
    who.append(make("bdi", tenure.holder), ` ${tenure.state === "held" ? "owns" : "owned"} it for ${held}`);
    tip.replaceChildren(who, make("p", time), make("p", end), make("p", tenure.token === null ? "" : `token ${tenure.token}`));
    const left = Math.min(event.clientX - frame.left + 12, frame.width - tip.offsetWidth - 8);
    const below = box.bottom - frame.top + 6, above = box.top - frame.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${below + tip.offsetHeight < frame.height ? below : above}px`;
}

/* ---- the details ------------------------------------------------------------------------------ */

function factsOf(entry) {
    const facts = [];
    if (entry.state !== "free") {
        facts.push(["owner", entry.holder], ["token", entry.token ?? "unknown"]);
        facts.push(["since", `${entry.began_known ? "" : "before "}${showTime(entry.began_ms)} ` +
            `${zoneOf(entry.began_ms)} (${entry.began_known ? "" : "at least "}${showDuration(now() - entry.began_ms)})`]);
        facts.push(["lease left", showLeft(entry)]);
    }
    facts.push(["waiting", entry.waiters ?? "the store does not know"]);
    if (entry.note)
        facts.push(["note", entry.note]);
    return facts;
}

function tenureItem(tenure) {
    const {held, time, end} = describe(tenure), item = make("li", `${held}: ${end}`, kindOf(tenure));
    const who = make("span", ""), note = make("span", "note: ");
    who.append(make("bdi", tenure.holder), tenure.token === null ? "" : ` · token ${tenure.token}`);
    note.append(make("bdi", tenure.note ?? ""));
    item.append(make("span", time), who, ...tenure.note ? [note] : []);
    return item;
}

function showTenures(entry) {
    const all = tenuresOf(entry), from = knownFrom(entry), more = byId("detail-more"), json = make("a", "history as JSON");
    json.href = `/api/history?${new URLSearchParams({since: "24h", mutex: entry.mutex})}`;
    byId("detail-tenures").replaceChildren(...all.slice(-TENURES_SHOWN).reverse().map(tenureItem));
    more.replaceChildren(all.length > TENURES_SHOWN ? `These are the last ${TENURES_SHOWN}. Earlier ones: `
        : Number.isFinite(from) ? `What ended before ${showTime(from)} ${zoneOf(from)} is not shown. ` : "", json);
    more.hidden = false;
}

/* All of the last day, if there are not very many. */
async function loadOwn(entry) {
    entry.ownFrom = await loadTenures(LONGEST_SPAN, entry.mutex, TENURES_EACH);
    entry.ownLoad = link.load;
    entry.version++;
    await askLeases([entry.mutex]);
}

function showDetail() {
    const entry = state.open;
    if (entry === null || (entry.version === state.openVersion && state.tick === state.openTick))
        return;
    const facts = byId("detail-facts"), states = {held: "owned", evicted: "owned; an operator ends this tenure", free: "free"};
    byId("detail-name").textContent = shown(entry.mutex);
    byId("detail-state").textContent = states[entry.state];
    facts.replaceChildren(...factsOf(entry).map(([term, value]) => {
        const row = make("div", ""), text = make("dd", "");
        text.append(make("bdi", value));
        row.append(make("dt", term), text);
        return row;
    }));
    drawLane(byId("detail-lane"), entry);
    if (entry.version !== state.openVersion)
        showTenures(entry);
    state.openVersion = entry.version;
    state.openTick = state.tick;
}

function openDetail(entry, isFocused = true) {
    if (!entry)
        return;
    state.open = entry;
    state.openVersion = -1;
    detail.hidden = false;
    detail.parentElement.classList.add("with-detail");
    detail.scrollTop = 0;
    if (link.isUp)
        loadOwn(entry).catch(() => {}); /* what is known is shown; everything is asked again soon */
    measureLanes(); /* they are narrower now */
    drawAxis();
    if (isFocused)
        detail.focus({preventScroll: true});
    schedule();
}

function closeDetail() {
    state.open = null;
    detail.hidden = true;
    detail.parentElement.classList.remove("with-detail");
    measureLanes();
    drawAxis();
    grid.focus({preventScroll: true});
    schedule();
}

/* ---- keyboard --------------------------------------------------------------------------------- */

function select(entry, isScrolled = true) {
    state.selected = entry ?? null;
    const index = state.rows.indexOf(entry), height = state.rowHeight;
    if (isScrolled && index >= 0) {
        if (index * height < scroller.scrollTop)
            scroller.scrollTop = index * height;
        else if ((index + 1) * height > scroller.scrollTop + scroller.clientHeight)
            scroller.scrollTop = (index + 1) * height - scroller.clientHeight;
    }
    schedule();
}

/* The details, where they are open, follow. */
function moveTo(index) {
    const entry = state.rows[Math.min(state.rows.length - 1, Math.max(0, index))];
    select(entry);
    if (state.open !== null)
        openDetail(entry, false);
}

function move(by) {
    const index = state.rows.indexOf(state.selected);
    moveTo(index < 0 ? (by > 0 ? 0 : Infinity) : index + by);
}

function pageRows() {
    return Math.max(1, Math.floor(scroller.clientHeight / state.rowHeight) - 1);
}

function escape() {
    if (state.open !== null) {
        closeDetail();
    } else if (search.value !== "") {
        search.value = "";
        onSearch();
    } else {
        grid.focus({preventScroll: true});
    }
}

function onKey(event) {
    const isTyping = event.target === search, isChoosing = event.target.tagName === "SELECT";
    const isReading = detail.contains(event.target); /* there the browser scrolls */
    if (event.ctrlKey || event.altKey || event.metaKey || isChoosing || (isReading && !["Escape", "/"].includes(event.key)))
        return;
    const keys = {
        ArrowDown: () => move(1), ArrowUp: () => move(-1),
        PageDown: () => move(pageRows()), PageUp: () => move(-pageRows()),
        Home: () => !isTyping && moveTo(0), End: () => !isTyping && moveTo(Infinity),
        Enter: () => event.target.tagName !== "BUTTON" && event.target.tagName !== "A" &&
            openDetail(state.selected ?? (isTyping ? state.rows[0] : null)),
        Escape: escape,
        "/": () => !isTyping && (search.focus(), search.select(), true),
    };
    const act = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (act !== null && act() !== false)
        event.preventDefault();
}

/* ---- controls --------------------------------------------------------------------------------- */

function onSearch() {
    scroller.scrollTop = 0;
    state.selected = null;
    sortRows();
    schedule();
    clearTimeout(state.found); /* said once, and not for each letter or change */
    state.found = setTimeout(() => (byId("found").textContent = `${byId("shown").textContent} found`), 700);
}

function onSort(button) {
    state.isDown = state.sort === button.dataset.sort && !state.isDown;
    state.sort = button.dataset.sort;
    for (const other of document.querySelectorAll("[aria-sort]"))
        other.removeAttribute("aria-sort");
    button.parentElement.setAttribute("aria-sort", state.isDown ? "descending" : "ascending");
    sortRows();
    schedule();
}

function onSpan(button) {
    view.span = button.dataset.minutes * 60e3;
    view.name = button.textContent;
    for (const other of byId("spans").children)
        other.setAttribute("aria-pressed", other === button);
    if (view.span > view.loadedSpan)
        loadSpan().catch(() => link.isUp && loadAll());
    changed.rows = true;
    tickOn();
}

function onSize() {
    readColours();
    measureLanes();
    state.openVersion = -1;
    sortRows();
    drawAxis();
    schedule();
}

function begin() {
    document.documentElement.classList.remove("no-script");
    document.addEventListener("keydown", onKey);
    document.addEventListener("visibilitychange", followVisibility);
    search.addEventListener("input", onSearch);
    byId("close").addEventListener("click", closeDetail);
    byId("filter").addEventListener("change", (event) => {
        state.filter = event.target.value;
        onSearch();
    });
    for (const button of document.querySelectorAll("[data-sort]"))
        button.addEventListener("click", () => onSort(button));
    for (const button of byId("spans").children)
        button.addEventListener("click", () => onSpan(button));
    scroller.addEventListener("scroll", () => {
        tip.hidden = true;
        schedule();
    }, {passive: true});
    window.addEventListener("resize", onSize);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"])
        matchMedia(query).addEventListener("change", onSize);
    readColours();
    measureLanes();
    sortRows();
    tickOn();
    setInterval(() => document.hidden || tickOn(), 1000);
    setInterval(() => document.hidden || askNow(() => askLeases(inSight())), LEASES_MS);
    connect();
}

begin();
