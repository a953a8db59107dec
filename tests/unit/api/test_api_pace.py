"""Turns at a server, by a clock that only moves when somebody waits."""

import threading

import pytest

from readout_audit.api.pace import Pace, StoppedError


class Clock:
    """A clock in seconds; waiting moves it."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> bool:
        self.time += seconds
        return False


def turns(pace: Pace, clock: Clock, count: int) -> list[float]:
    """When `count` turns in a row are given, in seconds from the start."""
    times = []
    for _ in range(count):
        pace.take()
        times.append(round(clock.time - 100.0, 6))
    return times


def test_thirty_a_minute_are_two_seconds_apart():
    clock = Clock()
    assert turns(Pace(30, clock, clock.sleep), clock, 4) == [0, 2, 4, 6]


def test_a_turn_not_taken_is_not_saved_up():
    clock = Clock()
    pace = Pace(30, clock, clock.sleep)
    pace.take()
    clock.time += 60
    assert turns(pace, clock, 3) == [60, 62, 64]


def test_without_a_limit_nobody_waits():
    clock = Clock()
    assert turns(Pace(None, clock, clock.sleep), clock, 3) == [0, 0, 0]


def test_a_pause_holds_for_the_next_one_whoever_it_is():
    clock = Clock()
    pace = Pace(60, clock, clock.sleep)
    pace.take()
    pace.pause(7.5)
    pace.pause(3)  # a shorter one does not end a longer one
    assert turns(pace, clock, 2) == [7.5, 8.5]


def test_whoever_waits_when_the_job_stops_is_let_go():
    pace = Pace(1)
    pace.take()
    ended: list[str] = []

    def wait() -> None:
        with pytest.raises(StoppedError):
            pace.take()  # would be 60 seconds
        ended.append("let go")

    thread = threading.Thread(target=wait)
    thread.start()
    pace.stop()
    thread.join(timeout=5)
    assert ended == ["let go"]
    with pytest.raises(StoppedError):
        pace.check()
