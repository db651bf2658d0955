import asyncio
import functools
import os
import signal
import time

import pytest
import simba
import simba.aio
from conftest import SECONDS, needs
from simba import _c


def on_a_loop(test):
    """pytest alone does not run coroutines."""
    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 2 * SECONDS))
    return run


@on_a_loop
async def test_lock(url, name):
    async with simba.aio.open(url, ttl=2, transition=2) as s:
        async with s.lock(name, timeout=SECONDS) as lock:
            assert lock.held and lock.token > 0 and lock.remaining > 0
            assert (await s.read(name)).token == lock.token
            another = s.lock(name)
            assert await another.acquire(blocking=False) is False
            assert await another.acquire(timeout=0.1) is False
            with pytest.raises(simba.Timeout, match="held by"):
                async with s.lock(name, timeout=0.1):
                    pass
            assert [entry.mutex for entry in await s.list(name)] == [name]
        assert not lock.held and await s.read(name) is None
        with pytest.raises(simba.StateError):
            await lock.release()
    assert not lock.held


@on_a_loop
async def test_the_loop_renews(url, name):
    async with simba.aio.open(url, ttl=0.4, transition=0.4) as s, s.lock(name) as lock:
        await asyncio.sleep(1.5)
        assert lock.held


@on_a_loop
async def test_the_loop_polls_in_time(url, monkeypatch):
    """Also if the descriptor is silent."""
    polls = []
    real = _c.lib.poll
    monkeypatch.setattr(_c.lib, "poll", lambda pointer: (polls.append(1), real(pointer))[1])
    monkeypatch.setattr(_c.lib, "poll_timeout", lambda pointer: 20)
    async with simba.aio.open(url, ttl=2):
        while len(polls) < 5:
            await asyncio.sleep(0.02)


@on_a_loop
async def test_waiters_take_turns(url, name):
    inside, order = [], []

    async def work(s):
        async with s.lock(name, timeout=SECONDS) as lock:
            inside.append(1)
            await asyncio.sleep(0.01)
            order.append((len(inside), lock.token))
            inside.pop()

    async with simba.aio.open(url, ttl=2) as s, simba.aio.open(url, ttl=2) as other:
        await asyncio.gather(*(work(one) for one in (s, other) * 5))
    assert {count for count, _ in order} == {1}
    assert [token for _, token in order] == sorted({token for _, token in order})


@on_a_loop
async def test_cancelled_wait(url, name):
    async with simba.aio.open(url, ttl=2) as s:
        lock = s.lock(name)
        async with s.lock(name):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(lock.acquire(), 0.1)
            assert not lock.held
        assert await s.read(name) is None
        assert await lock.acquire(timeout=SECONDS)  # it can be used again
        await lock.release()


@on_a_loop
async def test_cancelled_at_any_time(url, name):
    """Whatever the moment: either the task has the lock and gives it back, or it never had it."""
    async def work(s, i):
        async with s.lock(f"{name}-{i % 3}"):
            await asyncio.sleep(0)

    async with simba.aio.open(url, ttl=2) as s:
        for i in range(200):
            task = asyncio.create_task(work(s, i))
            for _ in range(i % 20):
                await asyncio.sleep(0)
            await asyncio.sleep(i % 7 / 2000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        for i in range(3):
            async with s.lock(f"{name}-{i}", timeout=SECONDS):
                pass


@on_a_loop
async def test_cancelled_after_the_grant(url, name):
    async with simba.aio.open(url, ttl=2) as s:
        lock = s.lock(name)
        task = asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        while not lock.held:  # polls without giving the loop a turn
            s._poll()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not lock.held
        async with s.lock(name, timeout=SECONDS):
            pass


@on_a_loop
async def test_lost(url, name):
    lost = asyncio.Queue()

    async def on_lost(state):
        await lost.put(state)

    async with simba.aio.open(url, ttl=1, transition=1) as s:
        with pytest.raises(simba.Lost):
            async with s.lock(name, on_lost=on_lost) as lock:
                await s.evict(name, forced=True)
                assert (await lost.get()).mutex == name
                assert not lock.held


@on_a_loop
async def test_close_with_locks_and_waiters(url, name):
    async with simba.aio.open(url, ttl=2) as s:
        lock = s.lock(name)
        await lock.acquire()
        waiter = asyncio.create_task(s.lock(name).acquire())
        await asyncio.sleep(0.05)
    with pytest.raises(simba.Canceled):
        await waiter
    assert not lock.held
    with pytest.raises(simba.StateError):
        s.lock(name)
    async with simba.aio.open(url, ttl=2) as s:
        assert await s.read(name) is None


@on_a_loop
async def test_watch(url, name):
    async with simba.aio.open(url, ttl=2) as s:
        watch = s.watch(name)
        assert (await anext(watch)).after is None
        async with s.lock(name) as lock:
            assert (await anext(watch)).token == lock.token
        assert (await anext(watch)).after is None
        await watch.aclose()
        assert [state async for state in watch] == []
        seen = []

        async def follow():
            async for state in s.watch():
                seen.append(state.mutex)

        task = asyncio.create_task(follow())
        async with s.lock(name + "-b"):
            while name + "-b" not in seen:
                await asyncio.sleep(0.01)
    await task  # ends with the client


def test_ten_thousand(url, name):
    """All wait in one loop at once. The figures are shown by pytest -s."""
    async def main():
        async with simba.aio.open(url, ttl=60, command_timeout=30, log=None) as s:
            locks = [s.lock(f"{name}-{i}") for i in range(10_000)]
            start = time.monotonic()
            assert all(await asyncio.gather(*(lock.acquire() for lock in locks)))
            acquired = time.monotonic()
            assert all(lock.held for lock in locks) and s.metrics().owned == len(locks)
            await asyncio.gather(*(lock.release() for lock in locks))
            released = time.monotonic()
            assert not any(lock.held for lock in locks) and s.metrics().owned == 0
        print(f"\n10,000 locks: acquired in {acquired - start:.2f} s, released in {released - acquired:.2f} s")
    asyncio.run(main(), debug=False)  # which keeps a traceback of every task


@on_a_loop
async def test_server_stopped(url, name, server_pid):
    lost = asyncio.Event()
    async with simba.aio.open(url, ttl=1, transition=1) as s:
        lock = s.lock(name, on_lost=lambda state: lost.set())
        await lock.acquire()
        os.kill(server_pid, signal.SIGSTOP)
        try:
            await lost.wait()
            assert not lock.held
            with pytest.raises((simba.StoreError, simba.Timeout)):
                async with s.lock(name, timeout=0.5):
                    pass
        finally:
            os.kill(server_pid, signal.SIGCONT)
        async with s.lock(name, timeout=SECONDS):
            pass


@on_a_loop
async def test_contender(url, name):
    needs("contender_resign")  # and on_stopped with it
    told, going_on = [], asyncio.Event()

    async def on_acquired(state):
        told.append("acquired")
        await going_on.wait()
        told.append("goes on")

    async def on_released(state):
        await asyncio.sleep(0)
        told.append("released")

    async with simba.aio.open(url, ttl=1, transition=1) as s:
        async with s.contender(name, on_acquired=on_acquired, on_released=on_released,
                               on_stopped=lambda: told.append("stopped")) as contender:
            token = await contender.wait_leader()
            assert contender.is_owner and contender.owns(token) and (await s.read(name)).token == token
            stopping = asyncio.create_task(contender.stop())
            await asyncio.sleep(0.2)
            assert not contender.is_owner and await s.read(name) is not None  # not given back while a callback runs
            going_on.set()
            await stopping
            assert await s.read(name) is None
            contender.start()
            assert await contender.wait_leader() > token
            contender.resign(0.05)
            assert not contender.is_owner
            await contender.wait_leader()
        assert len(s.clients) == 2
    assert told[:4] == ["acquired", "goes on", "released", "stopped"] and told[-2:] == ["released", "stopped"]


@on_a_loop
async def test_contender_callback_raises(url, name, caplog):
    needs("contender_resign")

    async def fail(state):
        raise ZeroDivisionError("of a coroutine")

    async with simba.aio.open(url, ttl=1) as s:
        async with s.contender(name, on_acquired=fail) as contender:
            await contender.wait_leader()
    assert "of a coroutine" in caplog.text


@on_a_loop
async def test_not_open():
    s = simba.aio.open("memory:")
    with pytest.raises(simba.StateError, match="async with"):
        await s.read("x")
    await s.close()
