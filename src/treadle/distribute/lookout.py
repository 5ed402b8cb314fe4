"""Looks out for workers that are lost: killed, stopped, cut off, or ended before the others.

An exchange waits for all workers, so one that is lost would let the others wait for ever. Beside
MPI each worker has a connection to the first one, over which it tells every second that it lives
and how many exchanges it has begun and ended. Where one is lost the first worker says which, once,
and all of them end; where the first one is lost the second one says so.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.safe_thread import SafeThread
from treadle.runtime.collectives import calls

_EVERY = 1.0  # seconds between two signs of life
_PATIENCE = 5.0  # seconds that a connection may take to be made


def longest_silence() -> float:
    """After so many seconds without a sign of life a worker is lost (TREADLE_WORKER_TIMEOUT)."""
    return float(os.environ.get("TREADLE_WORKER_TIMEOUT", "60"))


class _Peer:
    """What is known of another worker."""

    def __init__(self, rank: int, link: socket.socket) -> None:
        self.rank, self.link = rank, link
        self.heard = time.monotonic()
        self.begun = self.ended = 0
        self.waits_since = 0.0  # when it was first seen in the exchange that it waits in
        self.has_left = False
        self._text = b""

    def hear(self) -> list[dict[str, Any]] | None:
        """The messages that have come; None where the connection is closed."""
        try:
            data = self.link.recv(1 << 16)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            data = b""
        if not data:
            return None
        self.heard = time.monotonic()
        *lines, self._text = (self._text + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def tell(self, **message: Any) -> None:
        """Send a message; who is gone does not hear it."""
        with contextlib.suppress(OSError):
            self.link.sendall(json.dumps(message).encode() + b"\n")


class Lookout:
    """The connections of this worker, and a thread that looks after them.

    Args:
        rank: the number of this worker.
        processes: the machine and the number of each worker's process.
        say: ``say(text)`` tells the user why all workers end.
        end: ends all workers.
    """

    def __init__(
        self,
        rank: int,
        processes: Sequence[tuple[str, int]],
        say: Callable[[str], None],
        end: Callable[[], None],
    ) -> None:
        self._rank, self._processes, self._say, self._end = rank, processes, say, end
        self._peers: list[_Peer] = []
        self._silence = longest_silence()
        self._timeout: float | None = None
        self._is_over = False

    def begin(self, from_first: Callable[[Any], Any]) -> None:
        """Connect to the other workers.

        Args:
            from_first: gives all workers an object of the first one.
        """
        if self._rank == 0:
            door = socket.create_server(("", 0))
            word = secrets.token_hex(16)
            host = self._processes[0][0]
            from_first((host, door.getsockname()[1], word))
            self._peers = self._admitted(door, word)
            door.close()
        else:
            host, port, word = from_first(None)
            if host == self._processes[self._rank][0]:
                host = "localhost"
            link = socket.create_connection((host, port), _PATIENCE)
            first = _Peer(0, link)
            first.tell(rank=self._rank, word=word)
            self._peers = [first]
        for peer in self._peers:
            peer.link.settimeout(_PATIENCE)
        self._thread = SafeThread(target=self._look, name="treadle lookout", daemon=True)
        self._thread.start()
        atexit.register(self.leave)

    def _admitted(self, door: socket.socket, word: str) -> list[_Peer]:
        """The other workers, which connect to this one."""
        found: dict[int, _Peer] = {}
        door.settimeout(_PATIENCE * len(self._processes))
        while len(found) < len(self._processes) - 1:
            link, _ = door.accept()
            link.settimeout(_PATIENCE)
            said = json.loads(link.makefile("rb").readline() or b"{}")
            if said.get("word") == word:  # else it is no worker of this program
                found[said["rank"]] = _Peer(said["rank"], link)
        return [found[rank] for rank in sorted(found)]

    def wait_at_most(self, seconds: float | None) -> None:
        """How long an exchange may wait for other workers; None: for ever."""
        self._timeout = seconds

    def leave(self) -> None:
        """This worker has ended its program."""
        self._is_over = True
        begun, _ = calls()
        for peer in self._peers:
            peer.tell(leaves=begun)

    def report(self, text: str) -> None:
        """Let all workers end; the first one says why."""
        if self._rank == 0:
            self._say(text)  # before the others know: the first to end ends this one, too
            for peer in self._peers:
                peer.tell(ends=True)
        else:
            self._peers[0].tell(lost=text)
            time.sleep(_PATIENCE)  # the first worker ends this one
            self._say(text)
        self._end()

    # -- the thread --------------------------------------------------------------------------------

    def _look(self) -> None:
        chosen = selectors.DefaultSelector()
        for peer in self._peers:
            chosen.register(peer.link, selectors.EVENT_READ, peer)
        told = 0.0
        while chosen.get_map():
            for key, _ in chosen.select(_EVERY):
                if not self._heard(key.data):
                    chosen.unregister(key.data.link)
            now = time.monotonic()
            if now - told >= _EVERY:
                told = now
                begun, ended = calls()
                for peer in self._peers:
                    peer.tell(begun=begun, ended=ended)
                self._compare(now)

    def _heard(self, peer: _Peer) -> bool:
        """Take what a worker says. False where it is gone."""
        messages = peer.hear()
        if messages is None:
            if not peer.has_left:
                self._lost(peer, "its process has ended without a word (killed, or crashed)")
            return False
        for message in messages:
            if "begun" in message:
                if (message["begun"], message["ended"]) != (peer.begun, peer.ended):
                    peer.waits_since = time.monotonic()
                peer.begun, peer.ended = message["begun"], message["ended"]
            elif "leaves" in message:
                peer.has_left, peer.begun = True, message["leaves"]
            elif "lost" in message:
                self.report(message["lost"])
            elif "ends" in message:
                self._end()
        return True

    def _lost(self, peer: _Peer, why: str) -> None:
        host, process = self._processes[peer.rank]
        text = f"worker {peer.rank} is lost (process {process} on {host}): {why}"
        if self._rank == 0:
            self.report(text)
            return
        if self._rank == 1:  # of the others, the second worker says it
            self._say(text)
        self._end()

    def _compare(self, now: float) -> None:
        """Look for workers that are silent, or for which others wait in vain."""
        begun, ended = calls()
        for peer in self._peers:
            if not peer.has_left and now - peer.heard > self._silence:
                self._lost(peer, f"it gave no sign of life for {self._silence:.0f} seconds")
        if self._rank != 0:
            peer = self._peers[0]
            if peer.has_left and begun > max(ended, peer.begun):
                self._lost(peer, self._left(peer.begun, begun))
            return
        counts = [(0, begun, ended, self._is_over)]
        counts += [(p.rank, p.begun, p.ended, p.has_left) for p in self._peers]
        furthest = max(b for _, b, e, _ in counts if b >= e)
        waiting = [r for r, b, e, left in counts if b == furthest and b > e and not left]
        for peer in self._peers:
            if waiting and peer.has_left and peer.begun < furthest:
                self._lost(peer, self._left(peer.begun, furthest))
        if self._timeout is not None and waiting:
            late = [p for p in self._peers if p.begun < furthest]
            for peer in late:
                if now - peer.waits_since > self._timeout and peer.waits_since:
                    self._lost(
                        peer,
                        f"the others wait for it in exchange {furthest} for more than "
                        f"{self._timeout:g} seconds",
                    )

    @staticmethod
    def _left(begun: int, furthest: int) -> str:
        return (
            f"it ended its program after {begun} exchanges, and others wait for it in exchange "
            f"{furthest}"
        )
