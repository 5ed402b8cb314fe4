"""Exception types, named as TensorFlow's ``tf.errors``."""

from __future__ import annotations

from typing import Any


class OpError(Exception):
    """An operation failed. ``message`` is the text; ``node_def`` and ``op`` are TensorFlow's,
    as is what follows the message."""

    code = 2

    def __init__(self, node_def: Any, op: Any, message: str, *args: Any) -> None:
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message

    @property
    def error_code(self) -> int:
        """The number of the kind of error, as in TensorFlow."""
        return self.code

    @property
    def experimental_payloads(self) -> dict[Any, Any]:
        """What else is known of the error, as in TensorFlow: nothing."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.node_def, self.op, self.message)


class CancelledError(OpError):
    code = 1


class UnknownError(OpError):
    code = 2


class InvalidArgumentError(OpError, ValueError):
    """An argument has a wrong value, dtype or shape. Also a ValueError."""

    code = 3


class DtypeError(InvalidArgumentError, TypeError):
    """An operation does not take a dtype, or two dtypes differ.

    TensorFlow raises InvalidArgumentError for this eagerly and TypeError while tracing; an
    ``except`` for either catches it.
    """


class DeadlineExceededError(OpError):
    code = 4


class NotFoundError(OpError):
    code = 5


class AlreadyExistsError(OpError):
    code = 6


class PermissionDeniedError(OpError):
    code = 7


class ResourceExhaustedError(OpError, MemoryError):
    """There is no memory for a result or for what computes it. Also a MemoryError."""

    code = 8


class FailedPreconditionError(OpError):
    code = 9


class AbortedError(OpError):
    code = 10


class OutOfRangeError(OpError):
    code = 11


class UnimplementedError(OpError):
    code = 12


class InternalError(OpError):
    code = 13


class UnavailableError(OpError):
    code = 14


class DataLossError(OpError):
    code = 15


class UnauthenticatedError(OpError):
    code = 16


# The kinds of errors as numbers: `OpError.error_code` is one of them.
OK = 0
CANCELLED = CancelledError.code
UNKNOWN = UnknownError.code
INVALID_ARGUMENT = InvalidArgumentError.code
DEADLINE_EXCEEDED = DeadlineExceededError.code
NOT_FOUND = NotFoundError.code
ALREADY_EXISTS = AlreadyExistsError.code
PERMISSION_DENIED = PermissionDeniedError.code
RESOURCE_EXHAUSTED = ResourceExhaustedError.code
FAILED_PRECONDITION = FailedPreconditionError.code
ABORTED = AbortedError.code
OUT_OF_RANGE = OutOfRangeError.code
UNIMPLEMENTED = UnimplementedError.code
INTERNAL = InternalError.code
UNAVAILABLE = UnavailableError.code
DATA_LOSS = DataLossError.code
UNAUTHENTICATED = UnauthenticatedError.code


class InaccessibleTensorError(ValueError, TypeError):
    """A symbolic tensor was used outside the function trace that made it."""


class OperatorNotAllowedInGraphError(TypeError):
    """A symbolic tensor was used where Python needs a value, such as ``if`` without AutoGraph."""
