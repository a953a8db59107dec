"""How fast a server may be asked: a smallest distance between requests, and pauses that hold for all."""

import threading
import time
from collections.abc import Callable


class StoppedError(Exception):
    """The job is over; whoever waits for a turn need not wait any longer."""


class Pace:
    """Gives out turns to threads.

    Requests start at even distances, so a limit per minute holds in every minute and not on average.
    """

    def __init__(
        self,
        per_minute: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], bool] | None = None,
    ) -> None:
        """Allow `per_minute` requests a minute (None: any number).

        Args:
            per_minute: requests a minute, over all threads.
            clock: seconds.
            sleep: waits that many seconds and returns whether the job was stopped meanwhile.
        """
        self._interval = 0.0 if per_minute is None else 60.0 / per_minute
        self._clock = clock
        self._stopped = threading.Event()
        self._sleep = sleep or self._stopped.wait
        self._lock = threading.Lock()
        self._next = clock()

    def take(self) -> None:
        """Wait for a turn.

        Raises:
            StoppedError: the job was stopped.
        """
        while True:
            with self._lock:
                left = self._next - self._clock()
                if left <= 0:
                    self._next = self._clock() + self._interval
                    break
            self.wait(left)
        self.check()

    def pause(self, seconds: float) -> None:
        """Give no turn to anyone for `seconds` from now."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)

    def wait(self, seconds: float) -> None:
        """Wait `seconds`, or until the job is stopped.

        Raises:
            StoppedError: the job was stopped.
        """
        if self._sleep(seconds):
            raise StoppedError
        self.check()

    def check(self) -> None:
        """Raise `StoppedError` where the job was stopped."""
        if self._stopped.is_set():
            raise StoppedError

    def stop(self) -> None:
        """Let nobody wait or ask any more."""
        self._stopped.set()
