"""``td.compat.v1.contrib.rnn``: cells and loops of recurrent networks."""

from treadle.compat.v1.rnn import static_bidirectional_rnn as static_bidirectional_rnn
from treadle.compat.v1.rnn import static_rnn as static_rnn
from treadle.compat.v1.rnn_cell import BasicLSTMCell as BasicLSTMCell
from treadle.compat.v1.rnn_cell import BasicRNNCell as BasicRNNCell
from treadle.compat.v1.rnn_cell import DeviceWrapper as DeviceWrapper
from treadle.compat.v1.rnn_cell import DropoutWrapper as DropoutWrapper
from treadle.compat.v1.rnn_cell import GRUCell as GRUCell
from treadle.compat.v1.rnn_cell import LSTMCell as LSTMCell
from treadle.compat.v1.rnn_cell import LSTMStateTuple as LSTMStateTuple
from treadle.compat.v1.rnn_cell import MultiRNNCell as MultiRNNCell
from treadle.compat.v1.rnn_cell import ResidualWrapper as ResidualWrapper
from treadle.compat.v1.rnn_cell import RNNCell as RNNCell
from treadle.names import missing_in

__getattr__ = missing_in(__name__)
