# SPDX-License-Identifier: MIT
"""What kernel A tries, one module a room.  The modules are read twice: by the tests, for
what each probe wants, and inside kernel A, which runs them.
"""
