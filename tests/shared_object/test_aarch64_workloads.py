"""The core workloads on 64-bit Arm: cross-compiled, run by qemu, and compared with this machine's
results: bit for bit with those of its code for SSE2, whose vectors are as wide as NEON's."""

from __future__ import annotations

import dataclasses
import subprocess
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.shared_object.running import HAS_QEMU, Program
from tests.shared_object.workloads import EXACT, WORKLOADS, traced
from treadle.runtime.cpu.target import Target, can_run, host, named, using
from treadle.shared_object import exporting

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not HAS_QEMU, reason="there is no cross compiler or no qemu-aarch64"),
]

NEON, SSE2 = named("neon"), named("sse2")
# A server's processor: LLVM chooses and orders instructions for it, those of SVE among them.
SVE = dataclasses.replace(
    NEON, cpu="neoverse-v1", features=NEON.features | {"sve", "fullfp16", "bf16", "dotprod", "lse"}
)


Results = dict[str, list[dict[str, np.ndarray]]]  # of each call of each workload


def body(results: Results) -> str:
    """A C program that calls every function as often as its workload says, and writes a file for
    each result of each call."""
    lines = []
    for name, calls in results.items():
        lines += ["{", f"struct net_{name} call = NET_{name.upper()}_INIT;"]
        for key, array in WORKLOADS[name].arrays.items():
            data = f'read_file("{name}_{key}")'
            scalar = f"memcpy(&call.{key}, {data}, sizeof call.{key});"
            lines.append(f"call.{key}.data = {data};" if array.ndim else scalar)
        for number, found in enumerate(calls):
            lines.append(f"CHECK(net_{name}(&call));")
            for key, value in found.items():
                place = f"call.{key}.data" if value.ndim else f"&call.{key}"
                lines.append(f'write_file("{name}_{key}_{number}", {place}, {value.nbytes});')
                if value.ndim:
                    lines += [f"net_free(call.{key}.data);", f"call.{key}.data = NULL;"]
        lines.append("}")
    return "int main(void)\n{\nCHECK(net_set_threads(2));\n" + "\n".join(lines) + "\nreturn 0;\n}\n"


def results_here() -> Results:
    """What the workloads give on this machine."""
    results = {}
    for name, load in WORKLOADS.items():
        function = traced(name)
        calls = [function(*load.arrays.values()) for _ in range(load.calls)]
        results[name] = [{k: v.numpy() for k, v in call.items()} for call in calls]
    return results


@pytest.fixture(scope="module")
def of_vectors_of_128_bits() -> Results:
    """What this machine gives with vectors as wide as NEON's, where it has such code."""
    with using(SSE2 if can_run(SSE2) else host()):
        return results_here()


@pytest.fixture(scope="module", params=[NEON, SVE], ids=["neon", "sve"])
def computed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory,
    of_vectors_of_128_bits: Results,
) -> tuple[Program, Results]:  # fmt: skip
    """The program after its run, and what this machine gives. Variables of the library have the
    values that they have when it is written: before any call."""
    machine: Target = request.param
    functions = {name: traced(name) for name in WORKLOADS}
    folder = tmp_path_factory.mktemp("workloads")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "named", lambda target: machine)
        exported = td.shared_object.export(
            functions, folder / "libnet.so", target="aarch64", threads=2
        )
    results = of_vectors_of_128_bits
    program = Program(exported, body(results), is_arm=True)
    given = {
        f"{name}_{key}": array
        for name, load in WORKLOADS.items() for key, array in load.arrays.items()
    }  # fmt: skip
    assert program(**given) == []
    return program, results


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.skipif(not can_run(SSE2), reason="this machine has no code for SSE2")
def test_the_bits_are_those_of_vectors_of_the_same_width(name: str, computed: Any) -> None:
    program, results = computed
    for number, found in enumerate(results[name]):
        for key, wanted in found.items():
            result = program.result(f"{name}_{key}_{number}", wanted)
            np.testing.assert_array_equal(result, wanted, err_msg=f"{name} {key} {number}")


@pytest.fixture(scope="module")
def natively() -> Results:
    return results_here()


@pytest.mark.parametrize("name", WORKLOADS)
def test_results_are_near_those_of_this_machine(
    name: str, computed: Any, natively: Results
) -> None:
    program, _ = computed
    for number, found in enumerate(natively[name]):
        for key, wanted in found.items():
            result = program.result(f"{name}_{key}_{number}", wanted)
            if WORKLOADS[name].within == EXACT or wanted.dtype.kind in "biu":
                np.testing.assert_array_equal(result, wanted, err_msg=f"{name} {key} {number}")
                continue
            scale = float(np.abs(wanted).max(initial=0))
            np.testing.assert_allclose(
                result, wanted, rtol=0, atol=WORKLOADS[name].within * scale,
                err_msg=f"{name} {key} {number}",
            )  # fmt: skip


def test_what_is_tested_is_the_machine(computed: Any, request: pytest.FixtureRequest) -> None:
    """Code for a processor with SVE has its instructions."""
    program, _ = computed
    text = subprocess.run(
        ["aarch64-linux-gnu-objdump", "-d", str(program.folder / "libnet.so")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "fmla\tv" in text
    is_sve = "sve" in request.node.callspec.id
    assert ("ptrue" in text) is is_sve
