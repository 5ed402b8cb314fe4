"""``td.compat.v1.contrib.slim``: layers as functions with arguments by scopes, under one name."""

from treadle.compat.v1.contrib.framework import add_arg_scope as add_arg_scope
from treadle.compat.v1.contrib.framework import arg_scope as arg_scope
from treadle.compat.v1.contrib.framework import (
    assign_from_checkpoint_fn as assign_from_checkpoint_fn,
)
from treadle.compat.v1.contrib.framework import get_model_variables as get_model_variables
from treadle.compat.v1.contrib.framework import (
    get_or_create_global_step as get_or_create_global_step,
)
from treadle.compat.v1.contrib.framework import get_trainable_variables as get_trainable_variables
from treadle.compat.v1.contrib.framework import get_unique_variable as get_unique_variable
from treadle.compat.v1.contrib.framework import get_variables as get_variables
from treadle.compat.v1.contrib.framework import get_variables_by_name as get_variables_by_name
from treadle.compat.v1.contrib.framework import get_variables_by_suffix as get_variables_by_suffix
from treadle.compat.v1.contrib.framework import model_variable as model_variable
from treadle.compat.v1.contrib.framework import variable as variable
from treadle.compat.v1.contrib.layers import avg_pool2d as avg_pool2d
from treadle.compat.v1.contrib.layers import batch_norm as batch_norm
from treadle.compat.v1.contrib.layers import conv2d as conv2d
from treadle.compat.v1.contrib.layers import conv2d_transpose as conv2d_transpose
from treadle.compat.v1.contrib.layers import dropout as dropout
from treadle.compat.v1.contrib.layers import flatten as flatten
from treadle.compat.v1.contrib.layers import fully_connected as fully_connected
from treadle.compat.v1.contrib.layers import l1_regularizer as l1_regularizer
from treadle.compat.v1.contrib.layers import l2_regularizer as l2_regularizer
from treadle.compat.v1.contrib.layers import layer_norm as layer_norm
from treadle.compat.v1.contrib.layers import max_pool2d as max_pool2d
from treadle.compat.v1.contrib.layers import one_hot_encoding as one_hot_encoding
from treadle.compat.v1.contrib.layers import repeat as repeat
from treadle.compat.v1.contrib.layers import stack as stack
from treadle.compat.v1.contrib.layers import (
    variance_scaling_initializer as variance_scaling_initializer,
)
from treadle.compat.v1.contrib.layers import xavier_initializer as xavier_initializer
from treadle.compat.v1.contrib.layers import (
    xavier_initializer_conv2d as xavier_initializer_conv2d,
)
from treadle.names import missing_in

__getattr__ = missing_in(__name__)
