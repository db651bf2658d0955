#!/usr/bin/env python3
"""page_browser.py ADDRESS SIMBA URL [FOLDER]: uses the page of simba serve in Chromium as a reader does.

The store of URL has 10,000 owned mutexes, service-00000 and on (tests/serve/owners.c). SIMBA is the command, with which
tenures of others begin and end. FOLDER: pictures are put there. Needs what `scripts/setup browser` installs; ends with 77
where it is missing."""
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    sys.exit(77)

SECONDS = 20
MANY = 10000
ELEMENTS_MAX = 800  # of the page, however many mutexes there are
WORK_MS = 25  # of one frame in which all rows are new, the median; a frame has 16.7 on a machine that does nothing else
SCROLL = """
const done = arguments[0], frames = [], work = [];
let last = performance.now(), n = 0;
function step(time) {
    frames.push(time - last);
    last = time;
    scroller.scrollTop += 900;
    const began = performance.now();
    fillRows();
    work.push(performance.now() - began);
    if (++n < 200)
        requestAnimationFrame(step);
    else
        done([frames.slice(1).sort((a, b) => a - b), work.sort((a, b) => a - b)]);
}
requestAnimationFrame(step);"""
# Is there a pixel of this colour in the lane of the mutex?
COLOUR = """
const [name, colour] = arguments, one = pool.find((row) => row.entry?.mutex === name);
if (!one)
    return false;
const pixels = one.canvas.getContext("2d").getImageData(0, 0, one.canvas.width, one.canvas.height).data;
const wanted = colours[colour].match(/\d+/g).map(Number);
for (let i = 0; i < pixels.length; i += 4) {
    if (wanted.every((part, j) => Math.abs(pixels[i + j] - part) < 8))
        return true;
}
return false;"""


# The contrast of each colour to the paper, the least first.
CONTRAST = """
const light = (colour) => {
    const [r, g, b] = colours[colour].match(/\\d+/g).map((part) => part / 255)
        .map((part) => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b + .05;
};
return ["on", "released", "expired", "evicted", "unseen"].map((name) =>
    [Math.max(light(name), light("paper")) / Math.min(light(name), light("paper")), name]).sort((a, b) => a[0] - b[0]);"""


def check(is_so, what):
    if not is_so:
        sys.exit(f"page_browser.py: {what}")


class Reader:
    def __init__(self, chromium, driver, folder):
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for option in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
            options.add_argument(option)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.browser = webdriver.Chrome(service=Service(driver), options=options)
        self.browser.set_script_timeout(60)
        self.folder = folder

    def find(self, name):
        return self.browser.find_element(By.ID, name)

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def press(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()

    def wait(self, is_so, what):
        try:
            WebDriverWait(self.browser, SECONDS, 0.05).until(lambda _: is_so())
        except Exception:
            sys.exit(f"page_browser.py: not within {SECONDS} s: {what}")

    def row(self, name):
        """The texts of a row in sight, by column; {}: it is not in sight."""
        return self.run("""
const one = pool.find((row) => row.entry?.mutex === arguments[0] && !row.element.hidden);
return one ? Object.fromEntries(CELLS.map((name) => [name, one.cells[name].textContent])) : {};""", name)

    def picture(self, name):
        if self.folder:
            self.browser.save_screenshot(os.path.join(self.folder, name + ".png"))

    def check_quiet(self, when):
        said = [line for line in self.browser.get_log("browser") if line["source"] != "rendering"]
        check(not said, f"{when}: the console says {said}")


# Who is told to end does so a little later: an observer sees the eviction, and not only the release after it.
WORK = "trap 'sleep 2; exit' TERM; while :; do sleep 0.1; done"


class Owner:
    """Somebody who owns a mutex, by the command."""

    def __init__(self, simba, url, name, contender, *options):
        self.command, self.name = [simba, "-u", url, *options], name
        self.process = subprocess.Popen([*self.command, "lock", "--id", contender, name, "sh", "-c", WORK],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        self.process.terminate()
        self.process.wait()

    def evict(self):
        subprocess.run([*self.command, "release", "--yes", self.name], check=True, stderr=subprocess.DEVNULL)
        self.process.wait()


class Server:
    """A simba serve that can be ended and begun again at the same address."""

    def __init__(self, simba, url, address="http://127.0.0.1:0", *options):
        self.process = subprocess.Popen([simba, "-u", url, "serve", "--listen", address.removeprefix("http://"), *options],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().strip()

    def end(self):
        self.process.terminate()
        self.process.wait()


def check_many(reader):
    reader.wait(lambda: reader.run("return state.rows.length") >= MANY, f"{MANY} rows")
    check(reader.find("shown").text.startswith("10,0"), reader.find("shown").text)
    reader.wait(lambda: reader.find("figure-owned").text == "10,000", "10,000 are owned")
    frames, work = reader.browser.execute_async_script(SCROLL)
    elements = reader.run("return document.querySelectorAll('*').length")
    check(elements < ELEMENTS_MAX, f"{elements} elements")
    half, late = len(work) // 2, int(len(work) * .95)
    print(f"scrolling {MANY} rows: frames {frames[half]:.1f} ms (95 %: {frames[late]:.1f}), of that work "
          f"{work[half]:.1f} ms (95 %: {work[late]:.1f}); {elements} elements")
    check(work[half] < WORK_MS, f"a frame takes {work[half]:.1f} ms")
    reader.picture("many")
    reader.run("scroller.scrollTop = 1e9")
    reader.wait(lambda: reader.row(f"service-{MANY - 1:05}"), "the last row is in sight")
    reader.run("scroller.scrollTop = 0")


def check_live(reader, simba, url):
    reader.run("window.stays = true")
    one = Owner(simba, url, "aaa", "first@web1")
    reader.wait(lambda: reader.row("aaa").get("holder") == "first@web1", "a new owner is seen")
    check(reader.row("aaa")["token"].isdigit() and reader.row("aaa")["held"], f"the row is {reader.row('aaa')}")
    reader.wait(lambda: reader.row("aaa")["left"], "how long its lease lasts")
    reader.wait(lambda: reader.run(COLOUR, "aaa", "on"), "a bar is drawn for it")
    one.end()
    reader.wait(lambda: "released" in reader.row("aaa").get("holder", ""), "that it was released")
    reader.wait(lambda: reader.run(COLOUR, "aaa", "released"), "its bar has the colour of a release")
    two = Owner(simba, url, "aaa", "second@web2")
    reader.wait(lambda: reader.row("aaa").get("holder") == "second@web2", "the next owner is seen")
    two.evict()
    reader.wait(lambda: "evicted" in reader.row("aaa").get("holder", ""), "that it was evicted")
    reader.wait(lambda: reader.run(COLOUR, "aaa", "evicted"), "its bar has the colour of an eviction")
    reader.wait(lambda: reader.find("figure-lost").text == "1", "one was lost")
    check(reader.run("return window.stays"), "the page was loaded again")


def check_keyboard(reader):
    reader.press("/")
    check(reader.run("return document.activeElement === search"), "/ goes to the search")
    reader.press("0777")
    reader.wait(lambda: reader.run("return state.rows.length") == 11, "eleven names are like that")
    reader.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    chosen = reader.run("return state.selected?.mutex")
    check(chosen == reader.run("return state.rows[1].mutex"), f"the arrows choose the second, not {chosen}")
    reader.press(Keys.ENTER)
    check(reader.find("detail").is_displayed(), "Enter opens the details")
    check(reader.find("detail-name").text == chosen, reader.find("detail-name").text)
    check("@host-" in reader.find("detail-facts").text, reader.find("detail-facts").text)
    reader.press(Keys.ARROW_DOWN, Keys.END)
    check(reader.find("detail-name").text == chosen, "in the details keys scroll")
    reader.run("grid.focus()")
    reader.press(Keys.ARROW_DOWN)
    reader.wait(lambda: reader.find("detail-name").text == reader.run("return state.rows[2].mutex"), "in the list, the details follow")
    reader.press(Keys.END)
    reader.wait(lambda: reader.find("detail-name").text == reader.run("return state.rows.at(-1).mutex"), "also to the end")
    check(reader.run("return state.selected === state.open"), "the row chosen is that of the details")
    reader.press(Keys.ESCAPE)
    check(not reader.find("detail").is_displayed(), "Esc closes them")
    reader.press("/", "aaa")
    reader.press(Keys.ESCAPE)
    reader.wait(lambda: reader.run("return search.value") == "", "Esc empties the search")
    reader.press(Keys.ESCAPE)
    check(reader.run("return document.activeElement === grid"), "once more, and it leaves the search")
    reader.press("/", "10.0.0.7:8080/<b> 00100")
    reader.wait(lambda: reader.run("return state.rows.map((r) => r.mutex).join()") == "service-00100", "and notes")
    check("8080/<b>" in reader.row("service-00100")["holder"], f"the note is shown: {reader.row('service-00100')}")
    reader.press(Keys.ESCAPE, Keys.ESCAPE)
    reader.press("/", "OWNER-777@ service")
    reader.wait(lambda: reader.run("return state.rows.map((r) => r.mutex).join()") == "service-00777", "owners are searched, too")
    reader.press(Keys.ESCAPE)
    reader.press(Keys.ESCAPE)
    reader.press(Keys.END)
    reader.wait(lambda: reader.row(f"service-{MANY - 1:05}"), "End goes to the last")
    reader.press(Keys.HOME)
    reader.wait(lambda: reader.row("aaa"), "Home to the first")


def check_timeline(reader):
    reader.run("select(mutexes.get('aaa')); openDetail(mutexes.get('aaa'))")
    texts = "return [...byId('detail-tenures').children].map((item) => item.innerText)"  # they are made anew when more is known
    reader.wait(lambda: len(reader.run(texts)) == 2, "two tenures")
    first, second = reader.run(texts)
    check("an operator ended it" in first and "second@web2" in first, first)
    check("its owner released it" in second and "first@web1" in second, second)
    reader.picture("detail")
    reader.press(Keys.ESCAPE)
    lane = reader.run("return pool.find((row) => row.entry?.mutex === 'aaa').canvas")
    reader.browser.find_element(By.CSS_SELECTOR, "[data-minutes='15']").click()
    wide = lane.rect["width"]
    ActionChains(reader.browser).move_to_element_with_offset(lane, round(wide / 2 - 3), 0).perform()
    reader.wait(lambda: reader.find("tip").is_displayed(), "the pointer shows a tenure")
    check("owned it for" in reader.find("tip").text, reader.find("tip").text)
    reader.run("byId('filter').value = 'lost'; byId('filter').dispatchEvent(new Event('change'))")
    reader.wait(lambda: reader.run("return state.rows.map((r) => r.mutex).join()") == "aaa", "only what was lost is shown")
    reader.run("byId('filter').value = 'all'; byId('filter').dispatchEvent(new Event('change'))")
    reader.browser.find_element(By.CSS_SELECTOR, "[data-sort=token]").click()
    reader.browser.find_element(By.CSS_SELECTOR, "[data-sort=mutex]").click()


def check_hostile(reader, simba, url):
    evil = "</style><img src=x onerror=document.title='ran'>"
    one = Owner(simba, url, "aab" + evil[:60], evil + "@x")
    reader.wait(lambda: evil in reader.row("aab" + evil[:60]).get("holder", ""), "markup is shown as text")
    reader.run("openDetail(mutexes.get(arguments[0]))", "aab" + evil[:60])
    reader.wait(lambda: evil in reader.find("detail-facts").text, "also in the details")
    check(not reader.browser.find_elements(By.TAG_NAME, "img"), "a text became markup")
    turned = Owner(simba, url, "aac\u202etxt.exe", "evil\u202egnp\n@x")
    reader.wait(lambda: reader.row("aac\u202etxt.exe").get("holder") == "evil\ufffdgnp\ufffd@x", "what turns text is not shown")
    check(reader.row("aac\u202etxt.exe")["name"] == "aac\ufffdtxt.exe", "neither in a name")
    check(not reader.run("return /[\\u202a-\\u202e]/.test(document.documentElement.outerHTML)"), "nor anywhere else")
    turned.end()
    check(reader.browser.title != "ran", "a text became a script")
    reader.press(Keys.ESCAPE)
    one.end()


def check_short(reader, simba, url):
    one = Owner(simba, url, "aad", "short@web3", "--ttl", "2s", "--transition", "1s")
    reader.wait(lambda: reader.row("aad").get("holder") == "short@web3", "a short lease")
    lefts = set()
    for _ in range(24):
        row = reader.row("aad")
        if row.get("holder") == "short@web3":  # on a busy machine it may be lost
            lefts.add(row["left"])
        time.sleep(0.3)
    check(all(left == "renewed" or left.endswith("s") for left in lefts), f"how long a short lease lasts: {lefts}")
    one.end()


def check_cut(reader):
    """Of a mutex with very many tenures the page keeps some: it says so."""
    reader.run("""
for (let i = 0; i < 500; i++)
    takeTenure({mutex: "aae", state: "ended", holder: "x", token: i + 1, began_known: true, reason: "released",
        began_ms: now() - 800e3 + i * 1000, ended_ms: now() - 800e3 + i * 1000 + 900});
schedule();""")
    reader.wait(lambda: reader.run(COLOUR, "aae", "unknown"), "what is not loaded is shaded")
    from_ms = reader.run("return now() - mutexes.get('aae').cutAt")
    check(650e3 < from_ms < 750e3, f"what ended {from_ms} ms ago is not loaded")
    reader.run("mutexes.delete('aae'); changed.rows = true; schedule()")


def check_link(reader, simba):
    """A server that is gone, comes again, hangs, or does not answer a request."""
    def live():
        return reader.find("live").text

    def banner():
        return reader.find("banner").text

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:{folder}/locks.db"
        subprocess.run([simba, "-u", url, "init"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = Server(simba, url)
        reader.browser.get(server.address)
        reader.wait(lambda: live() == "live", "live")
        for i in range(4):
            one = Owner(simba, url, "shift", f"early{i}@web1")
            reader.wait(lambda: reader.row("shift").get("holder") == f"early{i}@web1", "changes")
            one.end()
        one = Owner(simba, url, "shift", "old@web1")
        reader.wait(lambda: reader.row("shift").get("holder") == "old@web1", "an owner")
        reader.wait(lambda: reader.find("shown").text == "1 mutex", "one mutex")
        server.end()
        reader.wait(lambda: "No answer from simba serve since" in banner(), "the server is gone")
        held = reader.row("shift")["held"]
        reader.picture("gone")
        time.sleep(2.5)
        check(reader.row("shift")["held"] == held, "clocks stand still")
        check(reader.run("return document.body.className") == "is-old" and live() != "live", live())
        one.end()
        one = Owner(simba, url, "shift", "new@web2")
        while subprocess.run([simba, "-u", url, "status", "shift"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
            time.sleep(0.1)
        server = Server(simba, url, server.address)
        reader.wait(lambda: reader.row("shift").get("holder") == "new@web2", "the owner as the new process of the server knows it")
        reader.wait(lambda: live() == "live" and not banner(), "live again")
        server.process.send_signal(signal.SIGSTOP)
        reader.wait(lambda: "No answer from simba serve since" in banner(), "the server hangs")
        server.process.send_signal(signal.SIGCONT)
        reader.wait(lambda: live() == "live" and not banner(), "it answers again")
        reader.browser.execute_cdp_cmd("Network.enable", {})
        reader.browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/api/mutexes*"]})
        reader.run("loadAll()")
        reader.wait(lambda: live() == "reading again …", "a request fails")
        reader.browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        reader.wait(lambda: live() == "live", "and succeeds")
        reader.run("takeStore({answers: false, since_ms: now(), why: 'refused'})")
        check(live() == "no answer of the store" and "The store has not answered since" in banner(), live())
        check(reader.run("return byId('live').className") == "off", "amber")
        check(reader.run("return document.querySelector('[value=waited]').disabled"), "this store does not know who waits")
        one.end()
        server.end()
    reader.browser.get("about:blank")
    reader.browser.get_log("browser")  # that connections were refused was to be


def check_sizes(reader):
    colours = set()
    for scheme in ("light", "dark"):
        reader.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                       {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        reader.wait(lambda: True, "")
        colours.add(reader.run("return getComputedStyle(document.body).backgroundColor + colours.on"))
        least = reader.run(CONTRAST)[0]
        check(least[0] >= 3, f"{scheme}: a contrast of {least}")
        reader.picture(scheme)
    check(len(colours) == 2, "light and dark are the same")
    reader.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                   {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": False})
    reader.wait(lambda: reader.run("return state.rowHeight") == 64, "rows are higher where it is narrow")
    check(reader.run("return document.documentElement.scrollWidth") <= 360, "it is wider than the screen")
    check(reader.run("return [...scroller.querySelectorAll('.row')].every((row) => row.scrollWidth <= 360)"), "a row is")
    reader.picture("phone")
    reader.run("openDetail(state.rows[0])")
    check(reader.find("detail").rect["width"] == 360, "details fill a small screen")
    reader.press(Keys.ESCAPE)
    for width, height in ((683, 325), (320, 256)):
        reader.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                       {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": False})
        reader.wait(lambda: reader.run("return scroller.clientHeight >= 2 * state.rowHeight"), f"rows at {width}x{height}")
        reader.picture(f"low-{width}")
    reader.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    reader.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "forced-colors", "value": "active"}]})
    reader.wait(lambda: reader.run("return matchMedia('(forced-colors: active)').matches"), "colours of the system")
    reader.run("select(state.rows[2])")
    time.sleep(1)
    reader.picture("forced")
    reader.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def check_policy(reader):
    reader.run("const s = document.createElement('script'); s.textContent = 'window.was_run = 1'; document.body.append(s)")
    check(not reader.run("return window.was_run"), "a foreign script ran")
    check("Content Security Policy" in str(reader.browser.get_log("browser")), "nobody refused it")


def check_recorded(reader, simba):
    """A history file: what was not recorded is shaded, and a file that is gone is said to be. What is not loaded yet
    is not counted."""
    known = """const entry = mutexes.get("shift"), width = 600, canvas = make("canvas", "");
drawLane(canvas, entry, {width, height: 20});
const at = (minutes) => canvas.getContext("2d").getImageData(Math.round(toX(now() - minutes * 60e3, width)), 2, 6, 1).data.some((b) => b > 0);
return [55, 35, 15, 3].map(at);"""
    with tempfile.TemporaryDirectory() as folder:
        url, path = f"sqlite:{folder}/locks.db", f"{folder}/history.db"
        subprocess.run([simba, "-u", url, "init"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Server(simba, url, "http://127.0.0.1:0", "--history", path).end()
        db = sqlite3.connect(path)  # it was recorded from 45 to 25 minutes ago, and from 5 minutes ago on
        db.execute("UPDATE recording SET began_ms = began_ms - 45 * 60000, last_ms = last_ms - 25 * 60000")
        db.execute("INSERT INTO recording(store, began_ms, last_ms, pid) SELECT store, began_ms + 40 * 60000, "
                   "last_ms + 25 * 60000, 1 FROM recording")
        db.commit()
        db.close()
        one = Owner(simba, url, "shift", "day@web1")
        server = Server(simba, url, "http://127.0.0.1:0", "--history", path)
        reader.browser.execute_cdp_cmd("Network.enable", {})
        reader.browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/api/mutexes*"]})
        reader.browser.get(server.address)
        reader.wait(lambda: reader.find("store").text, "the first event")
        time.sleep(1.5)
        check(reader.find("live").text != "live" and reader.find("figure-owned").text == "–",
              f"before anything is loaded: {reader.find('live').text}, {reader.find('figure-owned').text} owned")
        reader.browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        reader.wait(lambda: reader.row("shift").get("holder") == "day@web1", "an owner")
        reader.wait(lambda: reader.find("figure-owned").text == "1", "one is owned")
        reader.wait(lambda: reader.run(known) == [True, False, True, False], "what was not recorded is shaded")
        reader.picture("recorded")
        os.rename(path, path + ".old")
        reader.wait(lambda: "The history file " in reader.find("banner").text and "was moved or deleted: nothing is recorded any more" in reader.find("banner").text,
                    "the history file is gone")
        check(reader.find("live").text == "live", reader.find("live").text)
        reader.picture("moved")
        one.end()
        server.end()
    reader.browser.get("about:blank")
    reader.browser.get_log("browser")  # that requests were blocked was to be


def main():
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        sys.exit(77)
    address, simba, url = sys.argv[1:4]
    reader = Reader(chromium, driver, sys.argv[4] if len(sys.argv) > 4 else None)
    try:
        reader.browser.get(address)
        check_many(reader)
        check_live(reader, simba, url)
        check_keyboard(reader)
        check_timeline(reader)
        check_hostile(reader, simba, url)
        check_short(reader, simba, url)
        check_cut(reader)
        check_sizes(reader)
        reader.check_quiet("all the time")
        check_policy(reader)
        check_link(reader, simba)
        check_recorded(reader, simba)
    finally:
        reader.browser.quit()


main()
