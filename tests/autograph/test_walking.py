"""Walks of trees give the nodes of `ast.walk`, in its order."""

import ast
import inspect
import textwrap

import gast

from treadle.autograph.analysis import activity, walking


def test_it_is_the_walk_of_ast() -> None:
    tree = ast.parse(textwrap.dedent(inspect.getsource(activity)))
    assert list(map(id, walking.walk(tree))) == list(map(id, ast.walk(tree)))
    tree = gast.ast_to_gast(tree)
    assert list(map(id, walking.walk(tree))) == list(map(id, gast.walk(tree)))


def test_a_node_that_is_missing_fields_and_one_that_is_changed_meanwhile() -> None:
    call = ast.Call(ast.Name("f"), [ast.Constant(1)])
    vars(call.func).pop("ctx", None)  # Python 3.13 gives what is missing
    assert [type(n).__name__ for n in walking.walk(call)] == ["Call", "Name", "Constant"]
    seen = []
    for node in walking.walk(call):
        seen.append(type(node).__name__)
        if isinstance(node, ast.Call):
            node.args.append(ast.Constant(2))
    assert seen == ["Call", "Name", "Constant"]
