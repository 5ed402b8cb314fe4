"""What threads make once for all of them."""

from __future__ import annotations

import threading
import time

from treadle.core.locks import made_once


def test_one_result_however_many_threads_ask() -> None:
    made = []

    @made_once
    def thing(key: int) -> list[int]:
        time.sleep(0.01)  # others ask meanwhile
        made.append(key)
        return [key]

    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda k=k: found.append(thing(k % 2))) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [0, 1]
    assert all(each is thing(each[0]) for each in found)
    assert thing.is_made
    thing.forget()
    assert not thing.is_made and thing(1) == [1] and made[-1] == 1


def test_a_failure_is_not_kept_and_the_maker_may_ask_itself() -> None:
    attempts = []

    @made_once
    def number(n: int) -> int:
        attempts.append(n)
        if len(attempts) == 1:
            raise ValueError
        return 1 if n == 0 else n * number(n - 1)

    try:
        number(3)
    except ValueError:
        assert not number.is_made
    assert number(3) == 6
