"""Exchanges between the programs of several GPUs (`treadle.ops.control.replicas`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treadle.core.devices import find_device
from treadle.core.meeting import meet
from treadle.graph.ir import Node
from treadle.ops.control.collectives import ALL_REDUCE
from treadle.ops.control.replicas import (
    COMBINED,
    REDUCE_AMONG,
    STACK_AMONG,
    about_reduction,
)
from treadle.runtime.gpu.driver import Driver
from treadle.runtime.gpu.exchange import Exchange, Operand, exchange_between, joined
from treadle.runtime.gpu.routines.routine import Routine, address_of


class ExchangeRoutine(Routine):
    """An exchange in which the programs of all devices take part.

    Attributes:
        what: it does.
        exchange: how it is done, once it is prepared.
    """

    what = ""
    replays = False  # until it is known how

    def __init__(self, node: Node) -> None:
        self.attrs = node.attrs
        self.exchange: Exchange | None = None

    def prepare(self, driver: Driver) -> None:
        devices = map(find_device, self.attrs["devices"])
        drivers = [device.storage.driver for device in devices]  # type: ignore[attr-defined]
        self.exchange = exchange_between(drivers, self.attrs["by"])
        self.replays, self.name = self.exchange.records, f"{self.what} by {self.exchange.name}"

class ReduceAmong(ExchangeRoutine):
    """The arrays of all devices combined."""

    what = name = "all_reduce"

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        (given,), (got,), exchange = inputs, outputs, self.exchange
        assert exchange is not None
        how, count, dtype = self.attrs["how"], int(got.size), got.dtype
        meet(
            about_reduction(how, count, dtype), Operand(address_of(given), address_of(got)),
            lambda operands: exchange.reduce(operands, count, dtype, how),
        )  # fmt: skip


class StackAmong(ExchangeRoutine):
    """The arrays of all devices, one after the other."""

    what = name = "all_gather"

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        (given,), (got,), exchange = inputs, outputs, self.exchange
        assert exchange is not None
        size = int(given.nbytes)
        meet(
            f"all_gather of {size} bytes", Operand(address_of(given), address_of(got)),
            lambda operands: exchange.stack(operands, size),
        )  # fmt: skip


class Common(ExchangeRoutine):
    """What one device has, which all get."""

    what = name = "broadcast"

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        (got,), exchange, root = outputs, self.exchange, self.attrs["root"]
        assert exchange is not None
        size = int(got.nbytes)
        source = address_of(inputs[0]) if inputs else address_of(got)
        meet(
            f"broadcast of {size} bytes from {self.attrs['devices'][root]}",
            Operand(source, address_of(got)),
            lambda operands: exchange.pass_on(operands, size, root),
        )  # fmt: skip


class ReduceWorkers(Routine):
    """The arrays of the devices of all workers combined, each in a process of its own."""

    name = "all_reduce by NCCL"

    def __init__(self, how: str) -> None:
        self.how = how

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        (given,), (got,) = inputs, outputs
        if got.size:
            operand = address_of(given), address_of(got)
            joined(driver).all_reduce([operand], int(got.size), got.dtype, self.how)


def exchange_routine(node: Node) -> Routine | None:
    """The routine of a node that exchanges values; None for what only the host can pass on."""
    combines = node.outputs[0].spec.dtype in COMBINED
    if node.op is ALL_REDUCE:
        is_ours = combines and node.attrs.get("by") == "nccl"
        return ReduceWorkers(node.attrs["how"]) if is_ours else None
    if node.op is REDUCE_AMONG:
        return ReduceAmong(node) if combines else None
    return StackAmong(node) if node.op is STACK_AMONG else Common(node)

