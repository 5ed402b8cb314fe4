"""Large variables that begin as one number stay where they are when a program first writes them."""

import numpy as np
import pytest

import treadle as td


@pytest.mark.parametrize(
    "make",
    [
        lambda: td.zeros([512, 512]),
        lambda: td.ones_like(np.zeros((512, 512), np.float32)),
        lambda: td.fill([512, 512], 2.5),
    ],
)
def test_moments_of_an_optimizer(make):
    td.function(lambda x: x + 1.0)(1.0)  # there are programs

    def value():
        return td.Variable(make())

    variable = value()

    @td.function
    def step():
        variable.assign_add(td.ones_like(variable))

    before, address = variable.numpy().copy(), variable.cell().data
    step()
    assert variable.cell().data == address
    np.testing.assert_array_equal(variable, before + 1.0)


def test_their_elements_and_errors():
    assert td.zeros([300, 300], td.bool).numpy().sum() == 0
    assert td.ones([300, 300], td.bfloat16).numpy().astype(np.float32).sum() == 90000
    assert td.zeros([0, 1 << 40]).shape == (0, 1 << 40)
    assert (td.fill([300, 300], b"text").numpy() == b"text").all()
    with pytest.raises(td.errors.ResourceExhaustedError, match="1.00 TiB.*274877906944"):
        td.zeros([1 << 38])
