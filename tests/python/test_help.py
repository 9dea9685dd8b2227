"""Help: every public name is explained, and the native module's stub has every name."""

import ast
import inspect
import pickle
import pydoc
from importlib.resources import files

import gleaner
import gleaner.parts
import gleaner.spark
import pytest
from gleaner import _gleaner

MODULES = (gleaner, gleaner.parts, gleaner.spark)


def public() -> list[tuple[str, object]]:
    """Public modules, classes, functions and members of classes."""
    found = [(module.__name__, module) for module in MODULES]
    for module in MODULES:
        names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
        for name in names:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                if value.__module__.split(".")[0] == "gleaner":
                    found.append((f"{module.__name__}.{name}", value))
                    members = vars(value).items() if inspect.isclass(value) else ()
                    found += [(f"{module.__name__}.{name}.{member}", of) for member, of in members if is_documented(member, of)]
    return sorted(dict(found).items())


def is_documented(name: str, member: object) -> bool:
    return not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))


@pytest.mark.parametrize(("name", "value"), public(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_public_name_is_explained(name, value):
    text = inspect.getdoc(value)
    assert text and len(text.split()) >= 3, name
    first = text.splitlines()[0]
    assert first[0].isupper() and first.rstrip().endswith((".", ":")), f"{name}: {first}"


def test_help_is_text_that_names_everything():
    text = pydoc.render_doc(gleaner, renderer=pydoc.plaintext)
    for name in gleaner.__all__:
        if inspect.isfunction(getattr(gleaner, name)):
            assert f"    {name}(" in text, name
    assert "region" in pydoc.render_doc(gleaner.analyze)


def test_the_stub_has_every_native_name():
    stub = ast.parse((files(gleaner) / "_gleaner.pyi").read_text())
    stubbed = {node.name: node for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    native = {name for name in dir(_gleaner) if not name.startswith("_")} - {"VERSION"}
    assert set(stubbed) == native
    for name, node in stubbed.items():
        if isinstance(node, ast.FunctionDef):
            given = [argument.arg for argument in node.args.args]
            assert list(inspect.signature(getattr(_gleaner, name)).parameters) == given, name
    rows = {node.name for node in stubbed["Rows"].body if isinstance(node, ast.FunctionDef)}
    assert rows == {name for name in vars(_gleaner.Rows) if not name.startswith("__") or name.startswith("__arrow")}


def test_the_exception_survives_other_processes():
    error = pickle.loads(pickle.dumps(gleaner.Error("a text")))
    assert (type(error), str(error)) == (gleaner.Error, "a text")
    assert gleaner.Error.__module__ == "gleaner"
