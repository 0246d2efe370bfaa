# SPDX-License-Identifier: MIT
"""Things that data people do in cells.  Each is well when it ends without an error and what
it wants is in what it says.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thing:
    code: str
    wants: str
    needs: tuple[str, ...] = ()  # modules, without which it is left out
    not_in: str = ""  # tiers that do not have it, as docs/security.md says


THINGS: dict[str, Thing] = {
    # ---- numbers and tables ----
    "linear algebra": Thing(
        """
import numpy as np
print(round(np.linalg.inv(np.eye(200) * 2)[0, 0], 3))
""",
        "0.5",
        ("numpy",),
    ),
    "many threads of BLAS": Thing(
        "import numpy as np; a = np.ones((600, 600)); print((a @ a)[0, 0])", "600.0", ("numpy",)
    ),
    "a mapped array": Thing(
        """
import numpy as np
m = np.memmap('mapped.bin', dtype='f8', mode='w+', shape=(1000, 100))
m[:] = 3; m.flush(); del m
print(np.memmap('mapped.bin', dtype='f8').sum())
""",
        "300000.0",
        ("numpy",),
    ),
    "compressed arrays": Thing(
        """
import numpy as np
np.savez_compressed('a.npz', x=np.arange(10))
print(np.load('a.npz')['x'].sum())
""",
        "45",
        ("numpy",),
    ),
    "a group in pandas": Thing(
        """
import pandas as pd
df = pd.DataFrame({'a': [1, 1, 2], 'b': [1, 2, 3]})
print(df.groupby('a').b.sum().tolist())
""",
        "[3, 3]",
        ("pandas",),
    ),
    "a table through CSV": Thing(
        """
import pandas as pd
pd.DataFrame({'x': range(5)}).to_csv('x.csv', index=False)
print(len(pd.read_csv('x.csv')))
""",
        "5",
        ("pandas",),
    ),
    "a table through Excel": Thing(
        """
import pandas as pd
pd.DataFrame({'x': [7]}).to_excel('x.xlsx', index=False)
print(pd.read_excel('x.xlsx').x[0])
""",
        "7",
        ("pandas", "openpyxl"),
    ),
    "a table through SQL": Thing(
        """
import pandas as pd, sqlite3
db = sqlite3.connect('t.db')
pd.DataFrame({'x': [1, 2]}).to_sql('t', db, if_exists='replace', index=False)
print(pd.read_sql('select sum(x) s from t', db).s[0])
""",
        "3",
        ("pandas",),
    ),
    "times of a zone": Thing(
        """
import pandas as pd
print(pd.Timestamp('2024-07-01', tz='Europe/Berlin').utcoffset())
""",
        "2:00:00",
        ("pandas",),
    ),
    "a system of equations": Thing(
        """
from scipy import optimize
print(round(float(optimize.brentq(lambda x: x * x - 4, 0, 5)), 6))
""",
        "2.0",
        ("scipy",),
    ),
    # ---- pictures ----
    "a figure": Thing(
        """
import matplotlib.pyplot as plt
plt.plot([1, 2]); plt.title('größer'); plt.show()
print('shown')
""",
        "shown",
        ("matplotlib",),
    ),
    "a figure's file": Thing(
        """
import matplotlib.pyplot as plt
plt.figure(); plt.bar([1], [2]); plt.savefig('f.pdf')
plt.close('all')
print(open('f.pdf', 'rb').read(4))
""",
        "%PDF",
        ("matplotlib",),
    ),
    "fonts": Thing(
        """
from matplotlib import font_manager
print(font_manager.findfont('DejaVu Sans').rpartition('/')[2])
""",
        "DejaVuSans.ttf",
        ("matplotlib",),
    ),
    "a picture by hand": Thing(
        """
from PIL import Image
Image.new('RGB', (9, 9)).save('p.jpg')
print(Image.open('p.jpg').size)
""",
        "(9, 9)",
        ("PIL",),
    ),
    # ---- processes and threads ----
    "a pool of processes": Thing(
        """
from multiprocessing import Pool
with Pool(2) as p: print(p.map(abs, [-1, -3]))
""",
        "[1, 3]",
    ),
    "spawned processes": Thing(
        """
import multiprocessing as m
c = m.get_context('spawn')
with c.Pool(1) as p: print(p.map(abs, [-5]))
""",
        "[5]",
    ),
    "an executor of processes": Thing(
        """
from concurrent.futures import ProcessPoolExecutor as P
with P(2) as p: print(list(p.map(len, ['ab', 'c'])))
""",
        "[2, 1]",
    ),
    "processes of a server that forks": Thing(
        """
import multiprocessing as m
c = m.get_context('forkserver')
with c.Pool(2) as p: print(p.map(abs, [-1, -7]))
""",
        "[1, 7]",
    ),
    "a queue between processes": Thing(
        """
import multiprocessing as m
q = m.Queue()
p = m.Process(target=q.put, args=('sent',))
p.start(); print(q.get(timeout=20)); p.join()
""",
        "sent",
    ),
    "a manager of objects": Thing(
        """
import multiprocessing as m
with m.Manager() as g:
    l = g.list([1]); l.append(2); print(list(l))
""",
        "[1, 2]",
    ),
    "shared memory": Thing(
        """
from multiprocessing import shared_memory as s
a = s.SharedMemory(create=True, size=1 << 20)
b = s.SharedMemory(a.name); a.buf[0] = 7; print(b.buf[0]); b.close(); a.close(); a.unlink()
""",
        "7",
    ),
    "100 MB in /dev/shm": Thing(
        """
import os
large = f'/dev/shm/large-{os.getpid()}'
with open(large, 'wb') as f: f.write(bytes(100 << 20))
print(os.path.getsize(large) >> 20)
os.unlink(large)
""",
        "100",
    ),
    "threads": Thing(
        """
import threading
r = []
t = [threading.Thread(target=r.append, args=(i,)) for i in range(50)]
[x.start() for x in t]; [x.join() for x in t]; print(len(r))
""",
        "50",
    ),
    "an executor of threads": Thing(
        """
from concurrent.futures import ThreadPoolExecutor as T
with T(8) as t: print(sum(t.map(abs, range(-10, 0))))
""",
        "55",
    ),
    "another program": Thing(
        """
import subprocess
print(subprocess.run(['sh', '-c', 'echo $((6 * 7))'], capture_output=True, text=True).stdout)
""",
        "42",
    ),
    "a pipeline of programs": Thing(
        """
import subprocess
print(subprocess.check_output('seq 5 | sort -r | head -1', shell=True))
""",
        "5",
    ),
    "a program of its own": Thing(
        r"""
open('run.sh', 'w').write('#!/bin/sh\necho ran\n')
import os, subprocess
os.chmod('run.sh', 0o755)
print(subprocess.check_output(['./run.sh']))
""",
        "ran",
    ),
    "another Python": Thing(
        """
import subprocess, sys
print(subprocess.check_output([sys.executable, '-c', 'import json; print(json.dumps([1]))']))
""",
        "[1]",
    ),
    "programs of asyncio": Thing(
        """
import asyncio
p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=asyncio.subprocess.PIPE)
print(await p.stdout.read(), await p.wait())
""",
        "b'hi\\n' 0",
    ),
    "tasks of asyncio": Thing(
        """
import asyncio
print(await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.to_thread(abs, -2)))
""",
        "[1, 2]",
    ),
    "a FIFO": Thing(
        """
import os, threading
os.path.exists('ff') or os.mkfifo('ff')
threading.Thread(target=lambda: open('ff', 'w').write('flows')).start()
print(open('ff').read())
""",
        "flows",
    ),
    "a terminal": Thing(
        """
import pty, os
l, f = pty.openpty()
os.write(f, b'typed'); print(os.read(l, 10), os.isatty(f))
""",
        "b'typed' True",
        not_in="L",  # one list of terminals for all
    ),
    "niceness": Thing("import os; print(os.nice(1) >= 1)", "True"),
    "limits": Thing(
        """
import resource
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 256)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0)
""",
        "True\nTrue",
    ),
    "signals": Thing(
        """
import signal, os
got = []
old = signal.signal(signal.SIGUSR1, lambda n, f: got.append(n))
os.kill(os.getpid(), signal.SIGUSR1); signal.signal(signal.SIGUSR1, old); print(len(got))
""",
        "1",
    ),
    "a child is killed": Thing(
        """
import subprocess
p = subprocess.Popen(['sleep', '60']); p.kill(); print(p.wait())
""",
        "-9",
    ),
    "an alarm": Thing(
        """
import signal
signal.signal(signal.SIGALRM, lambda n, f: print('rang'))
signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()
""",
        "rang",
    ),
    "processor count": Thing("import os; print(len(os.sched_getaffinity(0)) > 0)", "True"),
    "a look at oneself": Thing(
        """
import psutil
p = psutil.Process(); print(p.memory_info().rss > 0, p.num_threads() > 0)
""",
        "True True",
        ("psutil",),
    ),
    # ---- the notebook's own ----
    "!command": Thing("!echo from the shell", "from the shell"),
    "lines of !command": Thing(
        """
lines = !seq 3
print(list(lines))
""",
        "['1', '2', '3']",
    ),
    "%%bash": Thing(
        """
%%bash
for i in 1 2; do echo n$i; done
""",
        "n2",
    ),
    "%timeit": Thing("%timeit -n 1 -r 1 sum(range(10))", "per loop"),
    "%pip list": Thing("%pip list", "ip "),
    "%run": Thing(
        """
open('script.py', 'w').write('print(6 * 7)')
%run script.py
""",
        "42",
    ),
    "%cd": Thing(
        """
import os
os.makedirs('sub', exist_ok=True)
%cd sub
%cd ..
""",
        "sub",
    ),
    "%%writefile": Thing(
        """
%%writefile written.txt
hello
""",
        "Writing written.txt",
    ),
    "a display": Thing(
        """
from IPython.display import display, HTML
display(HTML('<b>shown bold</b>'))
""",
        "shown bold",
    ),
    "input is refused": Thing(
        """
try: input()
except Exception as error: print(type(error).__name__)
""",
        "Error",
    ),
    # ---- files ----
    "temporary files": Thing(
        """
import tempfile, os
with tempfile.NamedTemporaryFile() as f, tempfile.TemporaryDirectory() as d:
    f.write(b'x'); open(os.path.join(d, 'y'), 'w').close(); print(os.listdir(d))
""",
        "['y']",
    ),
    "/tmp by its name": Thing(
        """
import os
name = f'/tmp/by-name-{os.getpid()}'
with open(name, 'w') as f: f.write('x')
print(os.path.getsize(name))
os.unlink(name)
""",
        "1",
        not_in="UL",  # one /tmp for all users of the machine: tempfile has another
    ),
    "the home directory": Thing(
        """
import os
home = os.path.expanduser('~')
os.makedirs(home + '/.config/x', exist_ok=True)
print(os.path.isdir(home + '/.config/x'), home != '~')
""",
        "True True",
    ),
    "caches": Thing(
        """
import pathlib, os
c = pathlib.Path(os.environ.get('XDG_CACHE_HOME', os.path.expanduser('~/.cache'))) / 'mine'
c.mkdir(parents=True, exist_ok=True); print(c.is_dir())
""",
        "True",
    ),
    "archives": Thing(
        """
import zipfile, tarfile
open('in.txt', 'w').write('x')
zipfile.ZipFile('z.zip', 'w').write('in.txt')
tarfile.open('t.tgz', 'w:gz').add('in.txt')
import shutil; print(shutil.make_archive('whole', 'zip', 'sub').rpartition('/')[2])
""",
        "whole.zip",
    ),
    "links and modes": Thing(
        """
import os
open('m', 'w').close(); os.chmod('m', 0o640); os.link('m', 'm2'); os.symlink('m', 'm3')
print(oct(os.stat('m3').st_mode & 0o777), os.stat('m').st_nlink)
os.unlink('m2'); os.unlink('m3')
""",
        "0o640 2",
    ),
    "moved and copied": Thing(
        """
import shutil, os
open('c1', 'w').write('x'); shutil.copy2('c1', 'c2'); shutil.move('c2', 'c3')
shutil.rmtree('tree', ignore_errors=True); shutil.copytree('sub', 'tree')
print(os.path.exists('c3'))
""",
        "True",
    ),
    "locks of files": Thing(
        """
import fcntl
f = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)
print('locked')
""",
        "locked",
    ),
    "a database with a journal": Thing(
        """
import sqlite3
db = sqlite3.connect('w.db'); print(db.execute('pragma journal_mode=wal').fetchone())
db.execute('create table if not exists t(a)'); db.commit()
""",
        "('wal',)",
    ),
    "pickles": Thing("import pickle; print(pickle.loads(pickle.dumps({1: 2})))", "{1: 2}"),
    "free space": Thing("import shutil; print(shutil.disk_usage('.').free > 0)", "True"),
    # ---- the machine ----
    "a virtual environment": Thing(
        """
import venv, subprocess
venv.create('env', system_site_packages=True, symlinks=True)
print(subprocess.check_output(['env/bin/python', '-c', 'import sys; print(sys.prefix)']))
""",
        "/env",
    ),
    "who I am": Thing("import getpass; print(len(getpass.getuser()) > 0)", "True"),
    "who the system says I am": Thing(
        "import os, pwd; print(pwd.getpwuid(os.getuid()).pw_dir != '')",
        "True",
        not_in="U",  # the machine's list of users is not ours to write
    ),
    "names of the machine": Thing(
        """
import platform, socket
print(bool(platform.platform()), bool(socket.gethostname()))
""",
        "True True",
    ),
    "languages": Thing(
        "import locale; print(locale.setlocale(locale.LC_ALL, ''), 'ä'.upper())", "Ä"
    ),
    "random numbers": Thing(
        """
import secrets, uuid; print(len(secrets.token_hex(8)), bool(uuid.uuid4()))
""",
        "16",
    ),
    "certificates": Thing(
        """
import ssl
c = ssl.create_default_context(); print(c.check_hostname, len(c.get_ca_certs()) >= 0)
""",
        "True True",
    ),
    "crashes are written down": Thing(
        """
import faulthandler, tempfile
with tempfile.TemporaryFile('w+') as f:
    faulthandler.dump_traceback(f); f.seek(0); print('most recent call' in f.read())
""",
        "True",
    ),
    "memory in megabytes": Thing("x = bytearray(300 << 20); print(len(x) >> 20); del x", "300"),
    "C of one's own": Thing(
        """
import ctypes; print(ctypes.CDLL(None).abs(-3), ctypes.CDLL('libm.so.6') is not None)
""",
        "3 True",
    ),
    "compiled code": Thing(
        r"""
import shutil, subprocess
open('main.c', 'w').write('int main(void) { return 0; }')
if shutil.which('gcc'): subprocess.run(['gcc', 'main.c', '-o', 'main'], check=True)
else: shutil.copy('/bin/true', 'main')
print('ended', subprocess.run(['./main']).returncode)
""",
        "ended 0",
    ),
    "all permitted clocks": Thing(
        "import time; print(time.thread_time() >= 0, time.monotonic() > 0)", "True True"
    ),
    "wakeups by select": Thing(
        """
import select, os
r, w = os.pipe(); e = select.epoll(); e.register(r, select.EPOLLIN)
os.write(w, b'x'); print(len(e.poll(1)))
""",
        "1",
    ),
    "sockets in pairs": Thing(
        """
import socket
a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))
""",
        "b'x'",
    ),
    "a socket of the workspace": Thing(
        """
import socket, os
os.path.exists('s') and os.unlink('s')
s = socket.socket(socket.AF_UNIX)
s.bind('s'); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect('s'); c.send(b'x')
print(s.accept()[0].recv(1))
""",
        "b'x'",
    ),
    "a socket by other paths": Thing(
        """
import os, socket, tempfile
with tempfile.TemporaryDirectory() as d:
    s = socket.socket(socket.AF_UNIX); s.bind(f'{d}/s'); s.listen()
    os.symlink(f'{d}/s', f'{d}/link'); here = os.getcwd(); os.chdir(d)
    fd = os.open('.', os.O_RDONLY); told = []
    for path in f'{d}/s', 's', './link', f'/proc/self/fd/{fd}/s', '/proc/self/cwd/s':
        c = socket.socket(socket.AF_UNIX); c.connect(path); s.accept()[0].send(b'x')
        told.append(c.recv(1)); c.close()
    os.chdir(here); os.close(fd); s.close()
print(told.count(b'x'))
""",
        "5",
    ),
    "sockets that are not there": Thing(
        """
import errno, socket
def why(path):
    c = socket.socket(socket.AF_UNIX)
    try: return errno.errorcode.get(c.connect_ex(path))
    finally: c.close()
gone = socket.socket(socket.AF_UNIX); gone.bind('gone'); gone.close()
open('file', 'w').close()
print(why('nowhere'), why('gone'), why('file'), why('file/below'), why('x' * 107))
import os; os.unlink('gone')
""",
        "ENOENT ECONNREFUSED ECONNREFUSED ENOTDIR ENOENT",
    ),
    "many connections at once": Thing(
        """
import socket, tempfile, threading
d = tempfile.TemporaryDirectory(dir='.')
s = socket.socket(socket.AF_UNIX); s.bind(f'{d.name}/s'); s.listen(10)
def talk():
    c = socket.socket(socket.AF_UNIX); c.connect(f'{d.name}/s'); r.append(c.recv(1)); c.close()
r = []; t = [threading.Thread(target=talk) for _ in range(200)]
[x.start() for x in t]
for _ in t:
    a = s.accept()[0]; a.send(b'x'); a.close()
[x.join() for x in t]; s.close(); d.cleanup(); print(r.count(b'x'))
""",
        "200",
    ),
    "a child that connects": Thing(
        """
import os, socket, subprocess, sys
os.path.exists('parent') and os.unlink('parent')
s = socket.socket(socket.AF_UNIX); s.bind('parent'); s.listen()
code = "import socket; c = socket.socket(socket.AF_UNIX); c.connect('parent'); c.send(b'child')"
print(subprocess.run([sys.executable, '-c', code]).returncode, s.accept()[0].recv(5))
""",
        "0 b'child'",
    ),
    "a unix server of asyncio": Thing(
        """
import asyncio
async def talk(r, w): w.write(await r.read(1)); await w.drain(); w.close()
s = await asyncio.start_unix_server(talk, 'served')
r, w = await asyncio.open_unix_connection('served')
w.write(b'x'); print(await r.read(1)); w.close(); s.close()
""",
        "b'x'",
    ),
    "a connection that is interrupted": Thing(
        """
import os, signal, socket
class Enough(Exception): pass
def enough(*_): raise Enough
os.path.exists('full') and os.unlink('full')
s = socket.socket(socket.AF_UNIX); s.bind('full'); s.listen(0)
first = socket.socket(socket.AF_UNIX); first.connect('full')  # nobody takes it
before = signal.signal(signal.SIGALRM, enough)
c = socket.socket(socket.AF_UNIX)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.2); c.connect('full')
except Enough: print('interrupted')
finally: signal.signal(signal.SIGALRM, before)
s.close(); first.close(); c.close(); os.unlink('full')
""",
        "interrupted",
    ),
    "a name that nobody has": Thing(
        """
import socket
try: socket.getaddrinfo('nobody.invalid', 80)
except OSError as error: print('refused', type(error).__name__)
""",
        "refused",
    ),
}

# What wants a network, be it only one's own.
NETWORK_THINGS: dict[str, Thing] = {
    "loopback": Thing(
        """
import socket
s = socket.create_server(('127.0.0.1', 0))
c = socket.create_connection(s.getsockname()); c.send(b'x'); print(s.accept()[0].recv(1))
""",
        "b'x'",
    ),
    "datagrams": Thing(
        """
import socket
a = socket.socket(type=socket.SOCK_DGRAM); a.bind(('127.0.0.1', 0))
b = socket.socket(type=socket.SOCK_DGRAM); b.sendto(b'x', a.getsockname()); print(a.recv(1))
""",
        "b'x'",
    ),
    "a web server of one's own": Thing(
        """
import http.server, threading, urllib.request
h = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=h.serve_forever, daemon=True).start()
o = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(o.open(f'http://127.0.0.1:{h.server_port}/').status); h.shutdown(); h.server_close()
""",
        "200",
    ),
    "HTTP by hand": Thing(
        """
import http.client, http.server, threading
h = http.server.ThreadingHTTPServer(('localhost', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=h.serve_forever, daemon=True).start()
c = http.client.HTTPConnection('localhost', h.server_port); c.request('GET', '/')
print(c.getresponse().status); c.close(); h.shutdown(); h.server_close()
""",
        "200",
    ),
    "a connection that nobody waits for": Thing(
        """
import errno, select, socket
s = socket.create_server(('127.0.0.1', 0))
c = socket.socket(); c.setblocking(False)
print(c.connect_ex(s.getsockname()) in (0, errno.EINPROGRESS))
print(select.select([], [c], [], 20)[1] == [c], c.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
s.close(); c.close()
""",
        "True\nTrue 0",
    ),
    "a port that nobody has": Thing(
        """
import errno, socket
s = socket.create_server(('127.0.0.1', 0)); there = s.getsockname(); s.close()
c = socket.socket(); print(errno.errorcode[c.connect_ex(there)]); c.close()
""",
        "ECONNREFUSED",
    ),
    "a connection that goes on behind a signal": Thing(
        """
import signal, socket, threading, time
s = socket.create_server(('127.0.0.1', 0), backlog=0)
first = socket.create_connection(s.getsockname())  # the next one waits until this is taken
taken = []
before = signal.signal(signal.SIGALRM, lambda *_: taken.append(s.accept()))
c = socket.socket(); main = threading.get_ident()
def knock():
    while not c.getsockname()[1]: time.sleep(0.01)  # until it has begun
    signal.pthread_kill(main, signal.SIGALRM)
t = threading.Thread(target=knock); t.start()
c.connect(s.getsockname()); t.join(); print(len(taken), c.getpeername() == s.getsockname())
signal.signal(signal.SIGALRM, before); s.close(); first.close(); c.close(); taken.clear()
""",
        "1 True",
    ),
    "a port that does not answer": Thing(
        """
import signal, socket
class Enough(Exception): pass
def enough(*_): raise Enough
s = socket.create_server(('127.0.0.1', 0), backlog=0)
first = socket.create_connection(s.getsockname())
before = signal.signal(signal.SIGALRM, enough)
c = socket.socket()
try:
    signal.setitimer(signal.ITIMER_REAL, 0.2); c.connect(s.getsockname())
except Enough: print('interrupted')
finally: signal.signal(signal.SIGALRM, before)
s.close(); first.close(); c.close()
""",
        "interrupted",
    ),
    "a datagram's way there and back": Thing(
        """
import socket
a = socket.socket(type=socket.SOCK_DGRAM); a.bind(('127.0.0.1', 0))
b = socket.socket(type=socket.SOCK_DGRAM); b.connect(a.getsockname()); b.send(b'x')
print(a.recv(1)); a.connect(b.getsockname()); a.connect(b.getsockname()); a.send(b'y')
print(b.recv(1))
""",
        "b'x'\nb'y'",
    ),
    "servers of asyncio": Thing(
        """
import asyncio
async def talk(r, w): w.write(await r.read(1)); await w.drain(); w.close()
s = await asyncio.start_server(talk, '127.0.0.1', 0)
r, w = await asyncio.open_connection(*s.sockets[0].getsockname())
w.write(b'x'); print(await r.read(1)); w.close(); s.close()
""",
        "b'x'",
    ),
}

PROXY_THINGS: dict[str, Thing] = {
    "urllib through the proxy": Thing(
        """
import urllib.request; print(urllib.request.urlopen('http://origin.test/u').read())
""",
        "proxied http://origin.test/u",
    ),
    "requests through the proxy": Thing(
        """
import requests; print(requests.get('http://origin.test/r', timeout=10).text)
""",
        "proxied http://origin.test/r",
        ("requests",),
    ),
    "pandas through the proxy": Thing(
        """
import pandas as pd; print(pd.read_csv('http://origin.test/p').columns[0])
""",
        "proxied http://origin.test/p",
        ("pandas",),
    ),
}
