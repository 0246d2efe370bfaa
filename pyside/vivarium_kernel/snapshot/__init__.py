# SPDX-License-Identifier: MIT
"""A namespace as bytes and back.

records     what the parts hand to each other
pickler     dump(): namespace to stream, tried until it can be written
dissect     the pickler itself: a reducer for each object, or a tombstone
stream      what stands between it and the sink
loader      load(): stream to namespace, name by name
salvage     the slow way to load one name of which a part cannot be loaded
missing     what could not be made, and which values lack it
process     what a session is beside its names: directory, environment, the shell
libraries   random generators and options of libraries
resume      code that starts a generator in the middle
kinds       what can be known about an object without running its code
singletons  the objects of libraries that are one of a kind
tombstone   what stands for a value that could not be kept
quiet       no output, traces or collections while a dump runs
live        the shell whose namespace it is
reducers/   how the kinds of objects are taken apart, one file a family

And what keeps the bytes:

session     the three below, as the kernel sees them
keeper      when it is saved
writer      one save: pickler, collector, manifest
comeback    a generation restored before the first cell
older       names that could not be loaded once, from the generation that has them
chunks      files of a megabyte named by their hash, in the spool
collector   takes the stream and cuts it
manifest    N.json, which says what a generation consists of
likeness    whether a value is the same as in the parent generation
baseline    a look at what was just restored
versions    generations that the daemon has not decided on
omissions   names that are left out: too large, or they hang
history     names that IPython makes with each cell
mapping     chunks mapped side by side, copy-on-write
orders      lines from the daemon
patience    how long a save may take, and the end of one that hangs
"""
