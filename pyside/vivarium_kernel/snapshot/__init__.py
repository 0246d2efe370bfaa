# SPDX-License-Identifier: MIT
"""A namespace as bytes and back.

records     what the parts hand to each other
pickler     dump(): namespace to stream
loader      load(): stream to namespace, name by name
salvage     the slow way to load one name of which a part cannot be loaded
process     what a session is beside its names: directory, random generators, options
kinds       what can be known about an object without running its code
singletons  the objects of libraries that are one of a kind
tombstone   what stands for a value that could not be kept
quiet       no output, traces or collections while a dump runs
live        the shell whose namespace it is
reducers/   how the kinds of objects are taken apart, one file a family
"""
