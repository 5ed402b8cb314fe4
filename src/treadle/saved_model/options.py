"""How models are saved and loaded: the options of TensorFlow that change something here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class SaveOptions:
    """How `save` writes a model.

    Args:
        save_debug_info: whether the paths of the user's files are kept, which errors of operations
            name; else the names of the files only.
        extra_tags: further tags that `load` may ask for.
        experimental_image_format: False only.
        function_aliases: names for compiled functions, or for collections of concrete ones, by
            which `load` can find them.
        namespace_whitelist, experimental_debug_stripper, experimental_io_device,
        experimental_variable_policy, experimental_skip_saver, experimental_sharding_callback,
        experimental_custom_gradients: taken for TensorFlow's programs. Gradients of
            `custom_gradient` are always kept.

    Raises:
        NotImplementedError: ``experimental_image_format=True``.
    """

    def __init__(
        self,
        namespace_whitelist: Any = None,
        save_debug_info: bool = False,
        function_aliases: Any = None,
        experimental_debug_stripper: bool = False,
        experimental_io_device: str | None = None,
        experimental_variable_policy: Any = None,
        experimental_custom_gradients: bool = True,
        experimental_image_format: bool = False,
        experimental_skip_saver: bool = False,
        experimental_sharding_callback: Any = None,
        extra_tags: Sequence[str] | None = None,
    ) -> None:
        if experimental_image_format:
            raise NotImplementedError(
                "SaveOptions: experimental_image_format is not supported: files have no size limit"
            )
        self.save_debug_info = save_debug_info
        self.namespace_whitelist = list(namespace_whitelist or [])
        self.function_aliases = dict(function_aliases or {})
        self.experimental_debug_stripper = experimental_debug_stripper
        self.experimental_io_device = experimental_io_device
        self.experimental_variable_policy = experimental_variable_policy
        self.experimental_custom_gradients = experimental_custom_gradients
        self.experimental_image_format = experimental_image_format
        self.experimental_skip_saver = experimental_skip_saver
        self.experimental_sharding_callback = experimental_sharding_callback
        self.extra_tags = tuple(extra_tags or ())


class LoadOptions:
    """How `load` reads a model.

    Args:
        experimental_skip_checkpoint: leave the variables zero.
        experimental_load_function_aliases: give the loaded object a dict `function_aliases` of the
            functions that were saved under aliases.
        allow_partial_checkpoint, experimental_io_device, experimental_variable_policy: taken for
            TensorFlow's programs.
    """

    def __init__(
        self,
        allow_partial_checkpoint: bool = False,
        experimental_io_device: str | None = None,
        experimental_skip_checkpoint: bool = False,
        experimental_variable_policy: Any = None,
        experimental_load_function_aliases: bool = False,
    ) -> None:
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_io_device = experimental_io_device
        self.experimental_skip_checkpoint = experimental_skip_checkpoint
        self.experimental_variable_policy = experimental_variable_policy
        self.experimental_load_function_aliases = experimental_load_function_aliases
