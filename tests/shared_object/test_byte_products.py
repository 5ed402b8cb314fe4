"""Libraries that multiply integers of 8 bits: on 64-bit Arm with and without instructions for them,
run by qemu, and on machines with matrix registers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.shared_object.running import HAS_QEMU, Program
from treadle.runtime.cpu.matmul.byte_forms import DOTS, byte_form
from treadle.runtime.cpu.target import Target, can_run, named
from treadle.shared_object import exporting

NEON = named("neon")
MACHINES = {
    "neon": NEON,
    "dotprod": dataclasses.replace(NEON, features=NEON.features | {"dotprod"}),
    "i8mm": dataclasses.replace(NEON, features=NEON.features | {"dotprod", "i8mm"}),
}


@pytest.mark.thorough
@pytest.mark.skipif(not HAS_QEMU, reason="there is no cross compiler or no qemu-aarch64")
@pytest.mark.parametrize("name", MACHINES)
def test_products_on_arm(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all signs, both ways to store an operand, and sizes that fill no vectors and no groups."""
    machine: Target = MACHINES[name]
    monkeypatch.setattr(exporting, "named", lambda target: machine)
    assert (byte_form("ss8", machine) == DOTS) is (name != "neon")
    assert (byte_form("su8", machine) == DOTS) is (name == "i8mm")
    rng = np.random.default_rng(0)
    m, n, k = 37, 45, 131
    a, b = rng.integers(-128, 128, (m, k)), rng.integers(-128, 128, (k, n))
    kinds = {"s": np.int8, "u": np.uint8}
    given, specs, results = {}, [], {}
    for letter, kind in kinds.items():
        for key, x in (("a", a), ("b", b)):
            given[f"{key}{letter}"] = x.astype(kind)
            given[f"{key}{letter}t"] = np.ascontiguousarray(x.T).astype(kind)
    for key, x in given.items():
        specs.append(td.TensorSpec(x.shape, x.dtype, key))

    def products(*arrays: td.Tensor) -> dict[str, td.Tensor]:
        named_arrays = dict(zip(given, arrays, strict=True))
        return {
            f"{left}{right}": td.matmul(
                named_arrays[left], named_arrays[right], left.endswith("t"), right.endswith("t"),
                output_type=td.int32,
            )
            for left in given if left[0] == "a" for right in given if right[0] == "b"
        }  # fmt: skip

    for left in "su":
        for right in "su":
            wanted = given[f"a{left}"].astype(np.int32) @ given[f"b{right}"].astype(np.int32)
            for ta in ("", "t"):
                for tb in ("", "t"):
                    results[f"a{left}{ta}b{right}{tb}"] = wanted
    exported = td.shared_object.export(
        products, tmp_path / "libnet.so", *specs, target="aarch64", name="net"
    )
    (call,) = exported.functions.values()
    reads = "\n".join(f'call.{key}.data = read_file("{key}");' for key in given)
    writes = "\n".join(
        f'write_file("{key}", call.{key}.data, {x.nbytes});' for key, x in results.items()
    )
    program = Program(exported, f"""
        int main(void)
        {{
            struct {call} call = {call.upper()}_INIT;
            {reads}
            CHECK({call}(&call));
            {writes}
            return 0;
        }}
        """, is_arm=True)  # fmt: skip
    program(**given)
    for key, wanted in results.items():
        assert np.array_equal(program.result(key, wanted), wanted), key


def test_a_library_for_matrix_registers_asks_for_them(tmp_path: Path) -> None:
    spec = td.TensorSpec([16, 64], td.int8, "x")
    exported = td.shared_object.export(
        lambda x: {"y": td.matmul(x, x, transpose_b=True, output_type=td.int32)},
        tmp_path / "libnet.so", spec, target="amx", name="net",
    )  # fmt: skip
    (call,) = exported.functions.values()
    x = np.arange(-512, 512).reshape(16, 64).astype(np.int8)
    program = Program(exported, f"""
        int main(void)
        {{
            struct {call} call = {call.upper()}_INIT;
            call.x.data = read_file("x");
            int status = {call}(&call);
            printf("%d %s\\n", status, status ? net_error() : "");
            if (status == 0) write_file("y", call.y.data, 16 * 16 * 4);
            return 0;
        }}
        """)  # fmt: skip
    (line,) = program(x=x)
    if can_run(named("amx")):
        assert line.startswith("0")
        wanted = x.astype(np.int32) @ x.astype(np.int32).T
        assert np.array_equal(program.result("y", wanted), wanted)
    else:
        assert line.startswith("2 this processor lacks ")
