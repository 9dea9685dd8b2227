"""Command lines that benches give to Gleaner's programs, read from the benches' source without running them.

A command line is a list, or the arguments of a call, in which an element is the path of a program: `programs / "gleaner-clerk"`, or one of VARIABLES. Its words
are the constant strings after that element, up to `--`; variables and lists within it are followed inside the function. Computed words are values.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT / "packaging/book")]

import reference  # noqa: E402

PROGRAMS = ("gleaner", "gleaner-agent", "gleaner-clerk", "gleaner-collector", "gleaner-commons", "gleaner-memoryd", "gleaner-recruiter")
BENCHES = tuple(f"bench/{path.name}" for path in (CHECKOUT / "bench").glob("*.py"))
#: Names of variables and attributes that hold a program's path.
VARIABLES = {
    "GLEANER": "gleaner",
    "agent": "gleaner-agent",
    "clerk": "gleaner-clerk",
    "collector": "gleaner-collector",
    "commons": "gleaner-commons",
    "gleaner": "gleaner",
    "gleaner_agent": "gleaner-agent",
    "memoryd": "gleaner-memoryd",
}
#: Functions of benches that add words to a command line: the beginning of that line, and the index of the first argument that is added.
WRAPPERS = {
    "gleaner": ("gleaner curve", 1),
    "pki": ("gleaner pki", 0),
    "run_gleaner": ("gleaner", 0),
    "swap": ("gleaner-clerk attach", 1),
}
#: Stands for the computed rest of a word.
REST = "…"


@dataclass(frozen=True)
class Word:
    """Word of a command line, without text if it is computed; `program` if it is the path of a program."""

    line: int
    text: str | None = None
    program: str | None = None

    @property
    def is_option(self) -> bool:
        return self.text is not None and self.text.startswith("-")


@dataclass(frozen=True)
class Command:
    """Words that a bench gives to a program."""

    file: str
    program: str
    words: tuple[Word, ...]


class Interface(Protocol):
    """Subcommands and options of programs. A path is a program and its subcommands."""

    def subcommands(self, path: tuple[str, ...]) -> set[str]: ...

    def accepts(self, path: tuple[str, ...], option: str) -> bool: ...


class Built:
    """Interface of the built programs and of the benches, by their help."""

    @cache
    def text(self, path: tuple[str, ...]) -> str:
        if path[0] in BENCHES:
            return subprocess.run([sys.executable, CHECKOUT / path[0], "--help"], check=True, capture_output=True, text=True).stdout
        return reference.said(*path, "--help")

    def subcommands(self, path: tuple[str, ...]) -> set[str]:
        return set(reference.subcommands(self.text(path)))

    def accepts(self, path: tuple[str, ...], option: str) -> bool:
        if option in options(self.text(path)):
            return True
        return path[0] not in BENCHES and self.is_hidden(path, option)

    def is_hidden(self, path: tuple[str, ...], option: str) -> bool:
        """True if the program knows an option that its help does not have; `--help` stops the program."""
        words = [reference.PROGRAMS / path[0], *path[1:], option, "--help"]
        return "unexpected argument" not in subprocess.run(words, capture_output=True, text=True, timeout=60).stderr


def options(text: str) -> set[str]:
    """Options of a help text: those at the beginning of its indented lines, before the examples."""
    found = set()
    for line in text.partition("\nExamples:")[0].splitlines():
        words = line.replace(",", " ").replace("=", " ").split()
        if not line.startswith(" "):
            continue
        for word in words:
            if word.startswith("-"):
                found.add(word)
            elif not (word.isupper() or word.startswith(("<", "{", "["))):
                break
    return found


def faults(command: Command, interface: Interface) -> Iterator[str]:
    """Subcommands and options of a command line that its program does not accept, each with file and line."""
    path: tuple[str, ...] = (command.program,)
    given, is_value = [], False
    for word in command.words:
        if word.is_option:
            given.append(word)
        elif word.text is not None:
            names = interface.subcommands(path)
            if word.text in names:
                path += (word.text,)
            elif names and not is_value:
                yield f"{command.file}:{word.line}: `{' '.join(path)}` has no subcommand `{word.text}`"
        is_value = word.is_option and "=" not in word.text
    for word in given:
        option = word.text.partition("=")[0]
        if REST in option:
            yield f"{command.file}:{word.line}: `{' '.join(path)}` gets the computed option `{option}`: write it in full"
        elif not interface.accepts(path, option):
            yield f"{command.file}:{word.line}: `{' '.join(path)}` does not accept `{option}`"


def path_of(command: Command, interface: Interface) -> str:
    """Program and subcommands of a command line."""
    path: tuple[str, ...] = (command.program,)
    for word in command.words:
        if word.text in interface.subcommands(path):
            path += (word.text,)
    return " ".join(path)


def commands(file: str, source: str) -> list[Command]:
    """Command lines of a bench's source."""
    reader = Reader(file)
    reader.read(ast.parse(source))
    return list(dict.fromkeys(reader.found))


Assigned = dict[str, list[tuple[ast.expr, bool]]]
"""Values of each variable, in order; true for those that `+=` adds."""


def assigned(nodes: Iterator[ast.AST]) -> Assigned:
    found: Assigned = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append((value, False))
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values):
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append((value, False))
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                found.setdefault(name, []).append((value, True))
    return found


class Reader(ast.NodeVisitor):
    """Collects the command lines of a file."""

    def __init__(self, file: str):
        self.file = file
        self.found: list[Command] = []
        self.scopes: list[Assigned] = []
        self.names: dict[int, str] = {}
        """Variable to which an expression is assigned, by the expression's id()."""

    def read(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.names[id(value)] = name
        self.scopes = [assigned(iter(tree.body))]
        self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.scopes.append(assigned(ast.walk(node)))
        self.generic_visit(node)
        self.scopes.pop()

    def visit_List(self, node: ast.List) -> None:
        self.note(node, self.expanded(node.elts))

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add):
            self.note(node, self.within(node))
        else:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        if name in WRAPPERS:
            line, first = WRAPPERS[name]
            program, *begin = line.split()
            before = [Word(node.lineno, program=program), *(Word(node.lineno, text) for text in begin)]
            self.note(node, [*before, *self.expanded(node.args[first:], is_flat=True)])
        else:
            self.note(node, self.expanded(node.args))

    def note(self, node: ast.expr, words: list[Word]) -> None:
        """Keeps a command line, if the words have one, and goes on inside of the expression."""
        for value in self.added(self.names.get(id(node))):
            words = [*words, *self.within(value)]
        for at, word in enumerate(words):
            is_value = at > 0 and (words[at - 1].text or "").startswith("--")
            if word.program and not is_value:
                rest = words[at + 1 :]
                end = next((index for index, after in enumerate(rest) if after.text == "--"), len(rest))
                if any(after.text is not None for after in rest[:end]):
                    self.found.append(Command(self.file, word.program, tuple(rest[:end])))
                break
        self.generic_visit(node)

    def values(self, name: str) -> list[tuple[ast.expr, bool]]:
        """Values of a variable in the innermost function that assigns it."""
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), [])

    def values_at(self, use: ast.Name) -> list[ast.expr]:
        """Values of a variable that are assigned before this use."""
        return [value for value, _ in self.values(use.id) if value.lineno <= use.lineno]

    def added(self, name: str | None) -> list[ast.expr]:
        return [value for value, is_added in self.values(name) if is_added] if name else []

    def expanded(self, nodes: list[ast.expr], is_flat: bool = False, seen: frozenset[str] = frozenset()) -> list[Word]:
        """Words of elements; with `is_flat`, also those of lists among them."""
        words = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                words += self.within(node.value, seen)
            elif is_flat and isinstance(node, ast.List):
                words += self.within(node, seen)
            else:
                words.append(self.word(node))
        return words

    def within(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> list[Word]:
        """Words of an expression that is a list."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return self.expanded(elements, seen=seen)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [*self.within(left, seen), *self.within(right, seen)]
            case ast.IfExp(body=body, orelse=other):
                return [*self.within(body, seen), *self.within(other, seen)]
            case ast.Call(func=ast.Name(id="map" | "list"), args=[*_, last]):
                return self.within(last, seen)
            case ast.ListComp(elt=element, generators=loops) | ast.GeneratorExp(elt=element, generators=loops):
                inner = argument_of_str(element)
                for loop in loops:
                    if isinstance(inner, ast.Name) and isinstance(loop.target, ast.Name) and loop.target.id == inner.id:
                        return self.within(loop.iter, seen)
                return self.expanded([element], seen=seen)
            case ast.Name(id=name) if name not in seen and (values := self.values_at(node)):
                return [word for value in values for word in self.within(value, seen | {name})]
        return [Word(node.lineno)]

    def word(self, node: ast.expr) -> Word:
        node = argument_of_str(node)
        match node:
            case ast.Constant(value=str(text)):
                return Word(node.lineno, text)
            case ast.JoinedStr(values=[ast.Constant(value=str(begin)), *_]) if begin.startswith("-"):
                return Word(node.lineno, begin + REST)
        return Word(node.lineno, program=self.program(node))

    def program(self, node: ast.expr) -> str | None:
        match node:
            case ast.BinOp(op=ast.Div(), right=ast.Constant(value=str(name))) if name in PROGRAMS or name in BENCHES:
                return name
            case ast.Attribute(attr=name) if name in VARIABLES:
                return VARIABLES[name]
            case ast.Name(id=name):
                paths = [value for value in self.values_at(node) if isinstance(value, ast.BinOp)]
                return next(filter(None, map(self.program, paths)), VARIABLES.get(name))
        return None


def argument_of_str(node: ast.expr) -> ast.expr:
    """X of `str(X)` and of `X.resolve()`."""
    match node:
        case ast.Call(func=ast.Name(id="str"), args=[inner]) | ast.Call(func=ast.Attribute(value=inner, attr="resolve"), args=[]):
            return argument_of_str(inner)
    return node


#: Functions that return the keys of a configuration which another function writes.
CONFIGURATIONS = {"identity": "gleaner-commons", "memory_server_keys": "gleaner-memoryd"}


@dataclass(frozen=True)
class Key:
    """Key that a bench writes into a program's configuration."""

    file: str
    line: int
    program: str
    name: str


def configured(file: str, source: str) -> list[Key]:
    """Keys of the variable `keys` in functions that name a file such as `clerk.toml`, and keys that functions of CONFIGURATIONS return."""
    found = []
    for function in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)):
        nodes = list(ast.walk(function))
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        programs = [name for name in PROGRAMS if f"{name.removeprefix('gleaner-')}.toml" in texts]
        program = programs[0] if programs else CONFIGURATIONS.get(function.name)
        if not program:
            continue
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id="keys")], value=value) | ast.AugAssign(target=ast.Name(id="keys"), value=value):
                    found += keys_of(file, program, value)
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id="keys"), slice=ast.Constant(value=str(name)))]):
                    found.append(Key(file, node.lineno, program, name))
                case ast.Return(value=ast.expr() as value) if function.name in CONFIGURATIONS:
                    found += keys_of(file, program, value)
    return found


def keys_of(file: str, program: str, value: ast.expr) -> list[Key]:
    names = [name for node in ast.walk(value) if isinstance(node, ast.Dict) for name in node.keys]
    return [Key(file, name.lineno, program, name.value) for name in names if isinstance(name, ast.Constant)]
