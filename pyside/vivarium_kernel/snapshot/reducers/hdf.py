# SPDX-License-Identifier: MIT
"""Files that h5py, PyTables and netCDF4 hold open, and what is reached through them."""

import importlib
import os
from typing import Any

from . import Unkeepable, family


@family("h5py._hl.files.File")
def reduce_h5py_file(pickler: Any, file: Any) -> Any:
    if not file:
        raise Unkeepable("it was closed")
    if file.driver == "core":
        raise Unkeepable("it was in memory")
    if file.mode != "r":
        file.flush()
    return open_h5py, (os.path.abspath(file.filename), file.mode)


def open_h5py(path: str, mode: str) -> Any:
    return importlib.import_module("h5py").File(path, mode)


@family("h5py._hl.base.HLObject")
def reduce_h5py_object(pickler: Any, found: Any) -> Any:
    if not found or found.name is None:
        raise Unkeepable("it has no name in an open file")
    return look_up, (found.file, found.name)


def look_up(file: Any, name: str) -> Any:
    return file[name]


@family("tables.file.File")
def reduce_tables_file(pickler: Any, file: Any) -> Any:
    if not file.isopen:
        raise Unkeepable("it was closed")
    if file.mode != "r":
        file.flush()
    mode = "r" if file.mode == "r" else "a"
    return open_tables, (os.path.abspath(file.filename), mode)


def open_tables(path: str, mode: str) -> Any:
    return importlib.import_module("tables").open_file(path, mode)


@family("tables.node.Node")
def reduce_tables_node(pickler: Any, node: Any) -> Any:
    if not node._v_isopen:
        raise Unkeepable("its file was closed")
    return look_up_node, (node._v_file, node._v_pathname)


def look_up_node(file: Any, path: str) -> Any:
    return file.get_node(path)


@family("netCDF4._netCDF4.Dataset")
def reduce_netcdf(pickler: Any, data: Any) -> Any:
    if not data.isopen():
        raise Unkeepable("it was closed")
    if data.parent is not None:
        return look_up_netcdf, (data.parent, "groups", data.name)
    writable = True
    try:
        data.sync()
    except RuntimeError:  # opened for reading
        writable = False
    path = data.filepath()
    return open_netcdf, (path if "://" in path else os.path.abspath(path), writable)


def open_netcdf(path: str, writable: bool) -> Any:
    return importlib.import_module("netCDF4").Dataset(path, "a" if writable else "r")


@family("netCDF4._netCDF4.Variable")
def reduce_netcdf_variable(pickler: Any, variable: Any) -> Any:
    return look_up_netcdf, (variable.group(), "variables", variable.name)


@family("netCDF4._netCDF4.Dimension")
def reduce_netcdf_dimension(pickler: Any, dimension: Any) -> Any:
    return look_up_netcdf, (dimension.group(), "dimensions", dimension.name)


def look_up_netcdf(group: Any, kind: str, name: str) -> Any:
    return getattr(group, kind)[name]
