"""Libraries for machines with matrix registers."""

from pathlib import Path

import numpy as np

import treadle as td
from tests.shared_object.running import Program
from treadle.runtime.cpu.target import can_run, named


def test_a_library_asks_for_the_registers(tmp_path: Path) -> None:
    spec = td.TensorSpec([16, 32], td.bfloat16, "x")
    exported = td.shared_object.export(
        lambda x: {"y": td.matmul(x, x, transpose_b=True)}, tmp_path / "libnet.so", spec,
        target="amx", name="net",
    )  # fmt: skip
    names = exported.header.read_text()
    (call,) = exported.functions.values()
    assert call in names
    program = Program(exported, f"""
        int main(void)
        {{
            struct {call} call = {call.upper()}_INIT;
            call.x.data = read_file("x");
            int status = {call}(&call);
            printf("%d %s\\n", status, status ? net_error() : "");
            return 0;
        }}
        """)  # fmt: skip
    (line,) = program(x=np.zeros((16, 32), np.uint16))
    if can_run(named("amx")):
        assert line.startswith("0")
    else:
        assert line.startswith("2 this processor lacks ")
        assert line.endswith(", which the library needs")
