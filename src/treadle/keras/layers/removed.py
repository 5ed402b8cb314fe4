"""Attributes of layers and models of Keras 2 that are gone, and what takes their place."""

from __future__ import annotations

_FIT = "takes generators and other iterables of batches"
_CALLS = "is gone: a layer's calls are steps of keras.Model(inputs, outputs)"
_UPDATES = "is gone: assign to variables in call()"

# Name -> how the sentence that begins with it goes on.
REMOVED = {
    "fit_generator": f"is gone: fit {_FIT}",
    "evaluate_generator": f"is gone: evaluate {_FIT}",
    "predict_generator": f"is gone: predict {_FIT}",
    "predict_classes": "is gone: use predict(x).argmax(-1), or predict(x) > 0.5 for one output",
    "predict_proba": "is gone: use predict",
    "add_metric": "is gone: give compile(metrics=...), or make a metric an attribute of the layer "
    "and call its update_state in call()",
    **dict.fromkeys(("add_update", "get_updates_for", "updates", "state_updates"), _UPDATES),
    "get_losses_for": "is gone: `losses` has all of them",
    **dict.fromkeys(
        (
            "inbound_nodes", "outbound_nodes", "get_input_at", "get_output_at",
            "get_input_shape_at", "get_output_shape_at", "get_input_mask_at", "get_output_mask_at",
        ),
        _CALLS,
    ),
    "reset_states": "is gone: call reset_states, or reset_state, of the recurrent layers",
    "sample_weights": "is gone: give fit and evaluate their sample_weight",
    "total_loss": "is gone: the loss of a batch is what compute_loss returns",
    "_make_train_function": "is gone: use make_train_function",
    "_make_predict_function": "is gone: use make_predict_function",
    "_make_test_function": "is gone: use make_test_function",
}  # fmt: skip
