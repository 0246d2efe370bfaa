# SPDX-License-Identifier: MIT
"""What can be known about an object without running its code, or its metaclass's."""

import sys
from types import MethodDescriptorType, ModuleType
from typing import Any

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
OWN_MODULES = frozenset({"__main__", "__mp_main__"})
KERNELS = ("vivarium_kernel", "ipykernel", "IPython", "asyncio", "tornado")
STANDARD = sys.stdlib_module_names

dict_of = type.__dict__["__dict__"].__get__
mro_of = type.__dict__["__mro__"].__get__
bases_of = type.__dict__["__bases__"].__get__
flags_of = type.__dict__["__flags__"].__get__
_name = type.__dict__["__name__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_module = type.__dict__["__module__"].__get__


def name_of(kind: type) -> str:
    return str(_name(kind))


def qualname_of(kind: type) -> str:
    return str(_qualname(kind))


def module_of(kind: type) -> str:
    try:
        found = _module(kind)
    except AttributeError:  # deleted by hand
        return ""
    return found if type(found) is str else ""


def full_name(kind: type) -> str:
    module = module_of(kind)
    name = qualname_of(kind)
    return name if module in ("builtins", *OWN_MODULES, "") else f"{module}.{name}"


def key_of(kind: type) -> str:
    """How the tables of reducers name it; a class of a cell is never mistaken for a builtin."""
    return f"{module_of(kind)}.{qualname_of(kind)}"


def inherited(kind: type, name: str) -> Any:
    """The attribute that instances inherit, without descriptors; None if there is none."""
    for base in mro_of(kind):
        found = dict_of(base).get(name)
        if found is not None:
            return found
    return None


def is_by_name(module: Any) -> bool:
    """A module that `import` finds again in another process."""
    return isinstance(module, ModuleType) and is_loadable(module, import_name(module))


def is_loadable(module: ModuleType, name: str) -> bool:
    if name in OWN_MODULES or sys.modules.get(name) is not module:
        return False
    if module.__dict__.get("__spec__") is not None:
        return True
    parent = name.rpartition(".")[0]  # some native libraries make submodules without a spec
    return bool(parent) and is_by_name(sys.modules.get(parent))


def import_name(module: ModuleType) -> str:
    """What `import` wants; the module `_io` calls itself `io`."""
    spec = module.__dict__.get("__spec__")
    name = getattr(spec, "name", None) or module.__dict__.get("__name__")
    return name if type(name) is str else ""


def is_found_as(value: object, module: str, path: str) -> bool:
    """`from module import path` gives this very object, here and in another process."""
    found: Any = sys.modules.get(module)
    if "<" in path or not isinstance(found, ModuleType) or not is_loadable(found, module):
        return False
    first, *rest = path.split(".")
    if first not in found.__dict__:  # its __getattr__ may import
        return False
    try:
        found = found.__dict__[first]
        for part in rest:
            found = getattr(found, part)
    except Exception:
        return False
    return found is value


def is_own(kind: type) -> bool:
    """A class of the user's session: it goes by value."""
    return bool(flags_of(kind) & HEAP_TYPE) and not is_found_as(
        kind, module_of(kind), qualname_of(kind)
    )


def is_native(kind: type) -> bool:
    """Written in another language, by a library that is not Python's own."""
    if top(module_of(kind)) in STANDARD or module_of(kind) == "builtins":
        return False
    if not flags_of(kind) & HEAP_TYPE:
        return True
    return has_native_methods(kind)


def has_native_methods(kind: type) -> bool:
    inside = dict_of(kind).values()
    return any(type(each) is MethodDescriptorType and each.__objclass__ is kind for each in inside)


def top(module: str) -> str:
    return module.partition(".")[0]


def describe(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # a user's __str__
        text = ""
    name = name_of(type(error))
    return f"{name}: {text}" if text else name
