"""Errors of the system about files, as TensorFlow's types of errors."""

from __future__ import annotations

import errno

from treadle.core import errors

_KINDS: dict[int, type[errors.OpError]] = {
    errno.ENOENT: errors.NotFoundError,
    errno.EEXIST: errors.AlreadyExistsError,
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), errors.PermissionDeniedError),
    **dict.fromkeys(
        (errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EBUSY, errno.EXDEV),
        errors.FailedPreconditionError,
    ),
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
        errors.ResourceExhaustedError,
    ),
    **dict.fromkeys((errno.EINVAL, errno.ENAMETOOLONG), errors.InvalidArgumentError),
}


def file_error(error: OSError, path: str) -> errors.OpError:
    """The error to raise for a file in place of the system's."""
    kind = _KINDS.get(error.errno or 0, errors.UnknownError)
    return kind(None, None, f"{path}; {error.strerror or error}")
