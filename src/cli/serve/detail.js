
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
    return {held, time: `${began}${end}`, end: endOf(tenure)};
}

function showTip(event, one) {
    const box = one.canvas.getBoundingClientRect(), x = event.clientX - box.left, near = 4;
    const tenure = tenuresOf(one.entry).findLast((t) => toX(t.began_ms, box.width) - near <= x &&
        Math.max(toX(endTime(t), box.width), toX(t.began_ms, box.width) + LEAST_BAR) + near >= x);
    tip.hidden = tenure === undefined;
    if (tip.hidden)
        return;
    const {held, time, end} = describe(tenure), frame = grid.getBoundingClientRect();
    tip.replaceChildren(make("p", `${tenure.holder} owned it for ${held}`), make("p", time), make("p", end),
        make("p", tenure.token === null ? "" : `token ${tenure.token}`));
    const left = Math.min(event.clientX - frame.left + 12, frame.width - tip.offsetWidth - 8);
    const below = box.bottom - frame.top + 6, above = box.top - frame.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${below + tip.offsetHeight < frame.height ? below : above}px`;
}

/* ---- the details ------------------------------------------------------------------------------ */

function factsOf(entry) {
    const left = leftOf(entry), facts = [];
    if (entry.state !== "free") {
        facts.push(["owner", entry.holder], ["token", entry.token ?? "unknown"]);
        facts.push(["since", `${entry.began_known ? "" : "before "}${showTime(entry.began_ms)} ` +
            `(${entry.began_known ? "" : "at least "}${showDuration(now() - entry.began_ms)})`]);
        facts.push(["lease left", left !== null && left > 0 ? showDuration(left) : "being asked"]);
    }
    facts.push(["waiting", entry.waiters ?? "the store does not know"]);
    if (entry.note)
        facts.push(["note", entry.note]);
    return facts;
}

function tenureItem(tenure) {
    const {held, time, end} = describe(tenure), item = make("li", `${held}: ${end}`, kindOf(tenure));
    item.append(make("span", time), make("span", tenure.holder +
        (tenure.token === null ? "" : ` · token ${tenure.token}`)));
    if (tenure.note)
        item.append(make("span", `note: ${tenure.note}`));
    return item;
}

function showDetail() {
    const entry = state.open;
    if (entry === null || (entry.version === state.openVersion && state.tick === state.openTick))
        return;
    const facts = byId("detail-facts"), states = {held: "owned", evicted: "owned; an operator ends this tenure", free: "free"};
    byId("detail-name").textContent = entry.mutex;
    byId("detail-state").textContent = states[entry.state];
    facts.replaceChildren(...factsOf(entry).map(([term, value]) => {
        const row = make("div", "");
        row.append(make("dt", term), make("dd", String(value)));
        return row;
    }));
    drawLane(byId("detail-lane"), entry);
    if (entry.version !== state.openVersion)
        byId("detail-tenures").replaceChildren(...tenuresOf(entry).slice(-TENURES_SHOWN).reverse().map(tenureItem));
    state.openVersion = entry.version;
    state.openTick = state.tick;
}

function openDetail(entry) {
    if (!entry)
        return;
    state.open = entry;
    state.openVersion = -1;
    detail.hidden = false;
    detail.parentElement.classList.add("with-detail");
    loadTenures(LONGEST_SPAN, entry.mutex, TENURES_EACH).catch(() => {});
    askLeases([entry.mutex]).catch(() => {});
    measureLanes(); /* they are narrower now */
    drawAxis();
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

function move(by) {
    const index = state.rows.indexOf(state.selected), last = state.rows.length - 1;
    const next = index < 0 ? (by > 0 ? 0 : last) : Math.min(last, Math.max(0, index + by));
    select(state.rows[next]);
    if (state.open !== null && state.rows[next])
        openDetail(state.rows[next]);
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
    if (event.ctrlKey || event.altKey || event.metaKey || isChoosing)
        return;
    const keys = {
        ArrowDown: () => move(1), ArrowUp: () => move(-1),
        PageDown: () => move(pageRows()), PageUp: () => move(-pageRows()),
        Home: () => !isTyping && select(state.rows[0]), End: () => !isTyping && select(state.rows[state.rows.length - 1]),
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
}

function onSort(button) {
    state.isDown = state.sort === button.dataset.sort && !state.isDown;
    state.sort = button.dataset.sort;
    for (const other of document.querySelectorAll("[data-sort]"))
        other.removeAttribute("aria-sort");
    button.setAttribute("aria-sort", state.isDown ? "descending" : "ascending");
    sortRows();
    schedule();
}

function onSpan(button) {
    view.span = button.dataset.minutes * 60e3;
    view.name = button.textContent;
    for (const other of byId("spans").children)
        other.setAttribute("aria-pressed", other === button);
    if (view.span > view.loadedSpan)
        loadTenures(view.loadedSpan = view.span).catch(() => (view.loadedSpan = 0));
    changed.rows = true;
    tickOn();
}

function onSize() {
    readColours();
    measureLanes();
    sortRows();
    drawAxis();
    schedule();
}

function begin() {
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
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onSize);
    document.querySelector("[data-sort=mutex]").setAttribute("aria-sort", "ascending");
    readColours();
    measureLanes();
    sortRows();
    tickOn();
    setInterval(() => document.hidden || tickOn(), 1000);
    setInterval(() => document.hidden || !link.isUp || askLeases(inSight()).catch(() => {}), LEASES_MS);
    connect();
}

begin();
