#!/usr/bin/python3
"""zookeeper_kazoo.py URL SECONDS: how many times a second kazoo's Lock is acquired and released."""
import sys
import time

from kazoo.client import KazooClient

hosts = sys.argv[1].split("//")[1].split("/")[0]
client = KazooClient(hosts=hosts, timeout=16)
client.start(timeout=10)
lock = client.Lock("/kazoo/mutex", "me")
for _ in range(100):
    lock.acquire()
    lock.release()
count, began = 0, time.monotonic()
while time.monotonic() - began < float(sys.argv[2]):
    lock.acquire()
    lock.release()
    count += 1
print(count / (time.monotonic() - began))
client.stop()
