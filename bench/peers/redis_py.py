#!/usr/bin/python3
"""redis_py.py URL SECONDS: redis-py's Lock, as it comes: a waiter polls every 100 ms. See compare."""
import os
import re
import sys

import redis
from measure import measure

port = int(re.search(r":(\d+)", sys.argv[1][len("redis://"):])[1])
measure(lambda: redis.Redis(port=port).lock("peer-redis-py", timeout=16, thread_local=False), float(sys.argv[2]))
sys.stdout.flush()
os._exit(0)  # the other thread waits
