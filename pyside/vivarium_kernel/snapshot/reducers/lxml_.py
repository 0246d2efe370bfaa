# SPDX-License-Identifier: MIT
"""Trees of lxml: the document as text, elements as places in it."""

import importlib
import re
import sys
from typing import Any

from ..kinds import dict_of, inherited, module_of, top
from . import Unkeepable, family, named
from .instances import reduce_instance

PREFIXED = re.compile(r"(?<![:\w])[A-Za-z_][\w.-]*:(?!:)")


def etree() -> Any:
    return importlib.import_module("lxml.etree")


@family("lxml.etree._Element")
def reduce_element(pickler: Any, element: Any) -> Any:
    if inherited(type(element), "__reduce__") is not dict_of(object)["__reduce__"]:
        return reduce_instance(pickler, element)  # lxml.objectify's have a pickle
    path: list[int] = []
    root = element
    while root.getparent() is not None:
        parent = root.getparent()
        path.append(parent.index(root))
        root = parent
    if path:
        return look_up, (root, path[::-1])
    tree = element.getroottree()
    if tree.getroot() is not element:
        raise Unkeepable("it stands beside the root of its document")
    text = etree().tostring(tree, encoding="utf-8")
    return parse, (text, place_of_parser(type(element), tree.parser), tree.docinfo.URL)


def place_of_parser(kind: type, parser: Any) -> tuple[str, str] | None:
    """Where the library of the elements' class keeps the parser that makes such elements."""
    package = top(module_of(kind))
    for name, module in list(sys.modules.items()):
        if parser is not None and top(name) == package:
            for key, value in list(getattr(module, "__dict__", {}).items()):
                if value is parser:
                    return name, key
    if module_of(kind) != "lxml.etree":
        raise Unkeepable(f"what makes elements of class {kind.__name__} is not known")
    return None


def parse(text: bytes, place: tuple[str, str] | None, url: str | None) -> Any:
    if place is None:
        parser = etree().XMLParser(huge_tree=True, resolve_entities=False)
    else:
        parser = getattr(importlib.import_module(place[0]), place[1])
    return etree().fromstring(text, parser, base_url=url)


def look_up(root: Any, path: list[int]) -> Any:
    for index in path:
        root = root[index]
    return root


@family("lxml.etree._ElementTree")
def reduce_tree(pickler: Any, tree: Any) -> Any:
    return make_tree, (tree.getroot(),)


def make_tree(root: Any) -> Any:
    return root.getroottree() if root is not None else etree().ElementTree()


@named("lxml.etree.XPath")
def reduce_xpath(pickler: Any, xpath: Any) -> Any:
    if PREFIXED.search(xpath.path):
        raise Unkeepable("its namespaces cannot be read")
    return type(xpath), (xpath.path,)
