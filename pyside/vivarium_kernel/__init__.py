# SPDX-License-Identifier: MIT
"""What runs inside a Python kernel: an ipykernel that loses no output and reports on itself.

connection  what the daemon hands over on descriptors 3 and 4
app         sockets, start and the order of things; `main`
kernel      one cell from request to reply
shell       IPython without files, warnings and colours
streams     sys.stdout, sys.stderr and descriptors 1 and 2
publisher   the IOPub thread and its socket
interrupts  what SIGINT does at each moment
displays    what is displayed, as a PNG or as text that says it; uses
            frames, plots, rasters (and the program draw_svg), readable
figures     open figures at the end of a cell, and which a file shows already
keeping     files that displays leave in the workspace
imports     what is done to a library after its import
summary     names for the reply's metadata; describe: one value in a few words
cells       which cell bound which name
snapshot/   the namespace kept on disk, and back
unsaved     where it cannot be
moved       what came back in a branch
view        tables that only a library can read, as text
census      threads and child processes
leaving     how the process ends
"""
