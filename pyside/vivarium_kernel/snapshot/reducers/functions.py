# SPDX-License-Identifier: MIT
"""Functions, their code and their closures, by value and bound to the live namespace."""

import ast
import importlib
import linecache
import marshal
import sys
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
)
from typing import Any

from .. import live
from ..kinds import is_by_name, is_found_as
from . import exactly

MINOR = sys.version_info[:2]
MARSHAL_VERSION = 2  # without references: the same code gives the same bytes each time
HERE = ("here", "")  # the globals of a function of this namespace


@exactly(FunctionType)
def reduce_function(pickler: Any, function: FunctionType) -> Any:
    module = function.__module__
    if type(module) is str and is_found_as(function, module, function.__qualname__):
        return NotImplemented  # by name
    code = function.__code__
    made = (code, whose_globals(function.__globals__), function.__name__, function.__closure__)
    state = {
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
        "__annotations__": function.__annotations__,
        "__qualname__": function.__qualname__,
        "__module__": module,
        "__doc__": function.__doc__,
        "__type_params__": getattr(function, "__type_params__", ()),
    }
    state = {name: value for name, value in state.items() if value}
    return make_function, made, (state, function.__dict__), None, None, set_function


def whose_globals(found: dict[str, Any]) -> Any:
    """The live namespace, a module's, or the very dictionary."""
    if found is live.namespace():
        return HERE
    name = found.get("__name__")
    module = sys.modules.get(name) if type(name) is str else None
    if module is not None and module.__dict__ is found and is_by_name(module):
        return ("module", name)
    return found


def make_function(code: CodeType, whose: Any, name: str, closure: Any) -> FunctionType:
    if whose == HERE:
        whose = live.namespace()
    elif type(whose) is tuple:
        whose = importlib.import_module(whose[1]).__dict__
    return FunctionType(code, whose, name, None, closure)


def set_function(function: FunctionType, state: Any) -> None:
    known, more = state
    function.__doc__ = None  # what the code's constants say may have been changed
    for name, value in known.items():
        setattr(function, name, value)
    function.__dict__.update(more)


def find(module: str, path: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


@exactly(CodeType)
def reduce_code(pickler: Any, code: CodeType) -> Any:
    place = (code.co_name, code.co_firstlineno)
    return make_code, (marshal.dumps(code, MARSHAL_VERSION), MINOR, pickler.source_of(code), place)


def make_code(
    data: bytes, minor: tuple[int, int], source: tuple[str, int, str] | None, place: tuple[str, int]
) -> Any:
    if source is not None:
        remember_source(*source)
    if tuple(minor) == MINOR:
        return marshal.loads(data)
    found = None if source is None else compile_again(source, place)
    if found is None:
        raise ValueError(f"it was compiled by Python {minor[0]}.{minor[1]}")
    return found


def compile_again(source: tuple[str, int, str], place: tuple[str, int]) -> CodeType | None:
    """The code of that name and line, by this version of Python, if there is only one."""
    filename, _, text = source
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    whole: CodeType = compile(text, filename, "exec", flags, dont_inherit=True)
    waiting, found = [whole], []
    while waiting:
        code = waiting.pop()
        if (code.co_name, code.co_firstlineno) == place:
            found.append(code)
        waiting += (each for each in code.co_consts if type(each) is CodeType)
    return found[0] if len(found) == 1 else None


def remember_source(filename: str, number: int, text: str) -> None:
    """For tracebacks and inspect: what IPython knew about the cell."""
    if filename not in linecache.cache:
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        names = getattr(getattr(live.shell(), "compile", None), "_filename_map", None)
        if number and names is not None:
            names.setdefault(filename, number)


@exactly(CellType)
def reduce_cell(pickler: Any, cell: CellType) -> Any:
    try:
        content = (cell.cell_contents,)
    except ValueError:  # still empty
        return make_cell, ()
    return make_cell, (), content, None, None, fill_cell


def make_cell() -> CellType:
    return CellType()


def fill_cell(cell: CellType, content: tuple[Any]) -> None:
    (cell.cell_contents,) = content


@exactly(MethodType)
def reduce_method(pickler: Any, method: MethodType) -> Any:
    return MethodType, (method.__func__, method.__self__)


@exactly(MappingProxyType)
def reduce_proxy(pickler: Any, proxy: Any) -> Any:
    return MappingProxyType, (dict(proxy),)


@exactly(property)
def reduce_property(pickler: Any, found: Any) -> Any:
    return property, (found.fget, found.fset, found.fdel, found.__doc__)


@exactly(staticmethod, classmethod)
def reduce_wrapper(pickler: Any, found: Any) -> Any:
    return type(found), (found.__func__,)


@exactly(GetSetDescriptorType, MemberDescriptorType)
def reduce_descriptor(pickler: Any, found: Any) -> Any:
    return getattr, (found.__objclass__, found.__name__)


@exactly(BuiltinFunctionType)
def reduce_builtin(pickler: Any, function: Any) -> Any:
    owner = function.__self__
    if owner is not None and not is_by_name(owner):
        return getattr, (owner, function.__name__)
    return NotImplemented
