#!/usr/bin/env python3
"""picture.py SIMBA URL FILE: makes docs/images/serve.png anew, from the root of the clone:

    tests/servers/redis tests/serve/picture.py build/simba @URL@ docs/images/serve.png

The owners and those who wait are real; the tenures of the last hour are made up, and put into a history file before
`simba serve` opens it. Needs what `scripts/setup browser` installs."""
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

# name, owner, seconds of a tenure, of a pause, parts of all that expire and are evicted, who wait now, owned now
MUTEXES = [
    ("backup:nightly", "backup@batch1", 90, 200, .1, .05, 0, True),
    ("billing:export", "billing@web2", 50, 20, .08, .06, 0, True),
    ("cache:warm", "cache@batch1", 40, 5, .1, 0, 0, True),
    ("cleanup:temp", "cleanup@batch2", 15, 60, .04, 0, 0, False),
    ("deploy:production", "deploy@ci1", 20, 180, .05, .08, 0, False),
    ("index:rebuild", "index@db1", 90, 4, .04, .06, 1, True),
    ("invoice:numbers", "invoice@web2", 700, 2, 0, 0, 1, True),
    ("leader:api", "leader@web3", 400, 12, .3, .2, 2, True),
    ("leader:mailer", "leader@batch1", 120, 12, .2, .1, 0, True),
    ("leader:scheduler", "leader@web3", 900, 14, .3, 0, 1, True),
    ("migrate:schema", "migrate@web2", 60, 400, .1, .1, 0, True),
    ("report:daily", "report@db1", 60, 45, .1, .05, 0, True),
    ("rotate:keys", "rotate@web3", 25, 50, .03, 0, 0, True),
    ("sync:inventory", "sync@web1", 130, 15, .1, .1, 0, False),
]
NOTES = {"leader:api": "http://10.0.0.7:8080"}


def fill(path):
    """Tenures of the last 50 minutes. Of a few nobody saw the end."""
    rng, now = random.Random(5), int(time.time() * 1000)
    db = sqlite3.connect(path)
    db.execute("UPDATE recording SET began_ms = ?", (now - 50 * 60000,))
    store, = db.execute("SELECT id FROM store").fetchone()
    for name, holder, held, pause, expired, evicted, _, is_on in MUTEXES:
        at, token = now - 50 * 60000 + rng.randrange(60000), 1794981375280000 + rng.randrange(9999)
        while True:
            end = at + int(held * 1000 * rng.uniform(.5, 1.5))
            if is_on and at < now - 2000 < end:
                end = now - 2000
            if end > now - (2000 if is_on else 90000):
                break
            kind = rng.random()
            reason = "expired" if kind < expired else "evicted" if kind < expired + evicted else None if kind > .98 else "released"
            db.execute("INSERT INTO tenure(store, mutex, holder, token, began_ms, began_known, ended_ms, reason, over_by_ms) "
                       "VALUES(?,?,?,?,?,1,?,?,?)",
                       (store, name, holder, token, at, end, reason, end + 30000 if reason is None else None))
            at, token = end + int(pause * 1000 * rng.uniform(.3, 1.7)), token + 1
    db.commit()
    db.close()


def serve(simba, url, path):
    process = subprocess.Popen([simba, "-u", url, "serve", "--listen", ":0", "--history", path], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process, process.stdout.readline().strip()


def end(process):
    process.terminate()
    process.wait()


def take(address, file):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for option in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1180,860"):
        options.add_argument(option)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": 1180, "height": 734, "deviceScaleFactor": 1, "mobile": False})
        browser.get(address)
        time.sleep(8)
        browser.execute_script("byId('store').textContent = 'redis://locks.example.org/0'; select(mutexes.get('leader:api'))")
        time.sleep(1)
        browser.save_screenshot(file)
    finally:
        browser.quit()


def main():
    simba, url, file = sys.argv[1:4]
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "history.db")
        end(serve(simba, url, path)[0])
        fill(path)
        server, address = serve(simba, url, path)
        try:
            for name, holder, _, _, _, _, waiters, is_on in MUTEXES:
                for i in range(is_on + waiters):
                    who = holder if i == 0 else f"{name.split(':')[0]}-{i}@spare"
                    note = ["elect", "--advertise", NOTES[name]] if name in NOTES else ["lock"]
                    work = [] if name in NOTES else ["sleep", "600"]
                    processes.append(subprocess.Popen([simba, "-u", url, "-q", note[0], "--id", who, *note[1:], name, *work],
                                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                    time.sleep(0.3)
            time.sleep(60)
            take(address, file)
        finally:
            for process in [server, *processes]:
                end(process)


main()
