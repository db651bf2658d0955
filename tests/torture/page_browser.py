#!/usr/bin/env python3
"""page_browser.py GOOD BAD LARGE HOSTILE: uses pages of tests/torture/page_sample.c in Chromium as a reader does.

Needs python3-selenium, chromium and chromedriver: `scripts/setup browser`. Ends with 77 where one is missing."""
import os
import shutil
import sys

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    sys.exit(77)

SECONDS = 20
FIRST_WIDE = """
const tenure = run.tenures.reduce((a, b) => b.to - b.from > a.to - a.from ? b : a);
return [toX((tenure.from + tenure.to) / 2), laneOf(tenure).y + size.laneHeight / 2, tenure.token, tenure.worker];"""
# The longest row of red pixels in the lanes, where the overlap is.
RED = """
const overlap = groups.flatMap((g) => g.overlaps)[0], lane = laneOf(overlap.tenures[0]);
const pixels = canvas.getContext("2d").getImageData(0, (lane.y + size.laneHeight / 2) * size.scale, canvas.width, 1);
const bad = colours.bad.match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
let longest = 0, now = 0;
for (let i = 0; i < canvas.width; i++) {
    now = bad.every((part, j) => Math.abs(pixels.data[4 * i + j] - part) < 8) ? now + 1 : 0;
    longest = Math.max(longest, now);
}
return longest / size.scale;"""


def check(is_so, what):
    if not is_so:
        sys.exit(f"page_browser.py: {what}")


class Reader:
    def __init__(self, chromium, driver):
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for option in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
            options.add_argument(option)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.browser = webdriver.Chrome(service=Service(driver), options=options)

    def open(self, page):
        self.browser.get("file://" + os.path.abspath(page))
        self.canvas = self.find("lanes")

    def find(self, name):
        return self.browser.find_element(By.ID, name)

    def run(self, script):
        return self.browser.execute_script(script)

    def window(self):
        return self.run("draw(); return [state.from, state.to]")

    def length(self):
        begin, end = self.window()
        return end - begin

    def wait(self, is_so, what):
        try:
            WebDriverWait(self.browser, SECONDS, 0.05).until(lambda _: is_so())
        except Exception:
            sys.exit(f"page_browser.py: not within {SECONDS} s: {what}")

    def point(self, x, y):
        """A point of the timeline, seen from its middle, as the driver counts."""
        self.run("canvas.scrollIntoView({block: 'center'})")
        return round(x - self.canvas.rect["width"] / 2), round(y - self.canvas.rect["height"] / 2)

    def check_quiet(self, when):
        # Advice about how these tests read pixels is not about the page.
        said = [line for line in self.browser.get_log("browser") if line["source"] != "rendering"]
        check(not said, f"{when}: the console says {said}")


def check_head(reader, word):
    check(word in reader.find("result").text, f"the result is {reader.find('result').text}")
    check(word in reader.browser.title, f"the title is {reader.browser.title}")
    check("(all)" in reader.find("window").text, reader.find("window").text)


def check_zoom(reader):
    whole = reader.length()
    ActionChains(reader.browser).scroll_from_origin(ScrollOrigin.from_element(reader.canvas), 0, -400).perform()
    reader.wait(lambda: reader.length() < whole * 0.7, "the wheel zooms in")
    reader.canvas.send_keys(Keys.HOME)
    check(reader.length() == whole, "Home shows all")
    reader.canvas.send_keys("+")
    check(reader.length() < whole * 0.7, "+ zooms in")
    begin = reader.window()[0]
    reader.canvas.send_keys(Keys.ARROW_RIGHT)
    check(reader.window()[0] > begin, "the arrow goes to the right")
    reader.canvas.send_keys(Keys.ARROW_LEFT)
    check(abs(reader.window()[0] - begin) < 1000, "and back")
    reader.canvas.send_keys("-")
    reader.find("all").click()
    check(reader.length() == whole, "the button shows all")
    ActionChains(reader.browser).move_to_element_with_offset(reader.canvas, *reader.point(600, 100)).click_and_hold() \
        .move_by_offset(100, 0).release().perform()
    reader.wait(lambda: reader.length() < whole * 0.15, "dragging shows the span")
    reader.find("all").click()


def check_tip(reader):
    x, y, token, worker = reader.run(FIRST_WIDE)
    ActionChains(reader.browser).move_to_element_with_offset(reader.canvas, *reader.point(x, y)).perform()
    reader.wait(lambda: reader.find("tip").is_displayed(), "the pointer shows a tooltip")
    text = reader.find("tip").text
    check("owned mutex" in text and "token" in text and "end: " in text, f"the tooltip says {text}")
    check(f"worker {worker}" in text, f"not of worker {worker}: {text}")
    reader.canvas.send_keys(Keys.ARROW_DOWN)
    reader.wait(lambda: "owned mutex" in reader.find("tip").text, "the keyboard shows a tooltip")
    before = reader.find("tip").text
    reader.canvas.send_keys(Keys.ARROW_DOWN)
    check(reader.find("tip").text != before, "the next tenure is another")
    reader.canvas.send_keys(Keys.ESCAPE)
    check(not reader.find("tip").is_displayed(), "Escape hides it")


def check_findings(reader):
    found = reader.run("return groups.flatMap((g) => g.overlaps).length")
    check(found == 2, f"{found} overlaps are drawn")
    for act in (lambda b: b.click(), lambda b: b.send_keys(Keys.ENTER)):
        reader.canvas.send_keys(Keys.HOME)
        act(reader.browser.find_element(By.CSS_SELECTOR, "#finding-list button"))
        begin, end = reader.window()
        at = reader.run("return run.findings[0].at")
        check(begin < at < end and end - begin < 1e9, f"the window is {begin} to {end}, the finding at {at}")
        check("at the same time as" in reader.find("tip").text, reader.find("tip").text)
        check(reader.run(RED) > 30, "the overlap is wide now")
    reader.find("all").click()


def check_tables(reader):
    for name in ("tenure-table", "fault-table"):
        reader.find(name).click()
        reader.wait(lambda: len(reader.browser.find_elements(By.CSS_SELECTOR, f"#{name} tr")) > 20, f"{name} opens")


def check_sizes(reader):
    metrics = {"height": 900, "deviceScaleFactor": 2, "mobile": False}
    colours = set()
    for scheme in ("light", "dark"):
        reader.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                       {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        colours.add(reader.run("draw(); return getComputedStyle(document.body).backgroundColor + colours.bar"))
    check(len(colours) == 2, "light and dark are the same")
    reader.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 400, **metrics})
    reader.wait(lambda: reader.run("return size.scale === 2 && size.width < 400"),
                "it is narrow, with twice as many pixels")
    check(reader.run("return document.documentElement.scrollWidth") <= 400, "it is wider than the screen")
    check(reader.run("draw(); " + RED) >= 3, "the overlap is not seen")
    reader.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def check_policy(reader):
    reader.run("const s = document.createElement('script'); s.textContent = 'window.was_run = 1'; "
               "document.body.append(s)")
    check(not reader.run("return window.was_run"), "a foreign script ran")
    check("Content Security Policy" in str(reader.browser.get_log("browser")), "nobody refused it")


def main():
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        sys.exit(77)
    good, bad, large, hostile = sys.argv[1:]
    reader = Reader(chromium, driver)
    try:
        reader.open(good)
        check_head(reader, "PASSED")
        check_zoom(reader)
        check_tip(reader)
        check_tables(reader)
        reader.check_quiet("good")
        reader.open(bad)
        check_head(reader, "FAILED")
        check_findings(reader)
        check_sizes(reader)
        reader.check_quiet("bad")
        reader.open(large)
        check(reader.run("draw(); " + RED) >= 3, "the overlap is not seen among many tenures")
        check_findings(reader)
        reader.check_quiet("large")
        reader.open(hostile)
        check(len(reader.browser.find_elements(By.CSS_SELECTOR, "script, img")) == 2, "a text became markup")
        check_tables(reader)
        reader.check_quiet("hostile")
        check_policy(reader)
    finally:
        reader.browser.quit()


main()
