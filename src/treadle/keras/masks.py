"""Masks of tensors: which time steps or examples count.

A mask travels with the tensor that a layer or a loss function gave, as in Keras 3; losses and
metrics look it up.
"""

from __future__ import annotations

from treadle.keras.attachments import Attachment

_masks = Attachment()
mask_of, set_mask = _masks.of, _masks.attach
