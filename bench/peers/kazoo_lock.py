#!/usr/bin/python3
"""kazoo_lock.py URL SECONDS: kazoo's Lock, the usual one of Python for ZooKeeper. See compare."""
import os
import sys

from kazoo.client import KazooClient
from measure import measure

hosts = sys.argv[1].split("//")[1].split("/")[0]


def open_lock():
    client = KazooClient(hosts=hosts, timeout=16)
    client.start(timeout=10)
    return client.Lock("/peer-kazoo/mutex", "me")


measure(open_lock, float(sys.argv[2]))
sys.stdout.flush()
os._exit(0)  # the other thread waits
