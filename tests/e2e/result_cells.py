# SPDX-License-Identifier: MIT
# ruff: noqa: E501 (a cell is best read as it is)
"""Cells and what a chat must get for them: the text, the pictures' sizes, a part of the footer.

`Out[12]` is written `Out`, and the number of the cell in the name of a kept file is `N`.
"""

from __future__ import annotations

from dataclasses import dataclass

Size = tuple[int, int]


# What only the environment of the extra `plots` has: cells that need any run there alone.
PLOTS = {"altair", "bokeh", "plotly", "polars", "seaborn", "sklearn", "sympy", "tqdm"}


@dataclass(frozen=True)
class Cell:
    code: str
    text: str | None = "(no output)"  # all of it; None where `has` says enough
    images: tuple[Size | None, ...] = ()  # None: of any size
    footer: str = ""  # must be in it
    has: tuple[str, ...] = ()  # must be in the text
    lacks: tuple[str, ...] = ()  # must be nowhere in the answer
    needs: tuple[str, ...] = ()  # packages, without which the cell is not run


def pandas(code: str, text: str | None = "(no output)", footer: str = "", **more: object) -> Cell:
    code = "import pandas as pd, numpy as np\n" + code
    return Cell(code, text, footer=footer, needs=("pandas",), **more)  # type: ignore[arg-type]


def styled(code: str, text: str | None = "(no output)", footer: str = "", **more: object) -> Cell:
    code = "import pandas as pd, numpy as np\n" + code
    return Cell(code, text, footer=footer, needs=("pandas", "jinja2"), **more)  # type: ignore[arg-type]


# A figure of 400 x 300 pixels, and inline figures as large as they are.
FIGURE = """import matplotlib.pyplot as plt
%config InlineBackend.print_figure_kwargs = {'bbox_inches': None}
fig = plt.figure(figsize=(4, 3), dpi=100)
plt.plot([1, 3, 2]);
"""
SHOWN, BIG = (400, 300), (1200, 900)


def figure(code: str, *images: Size | None, footer: str = "", text: str | None = None) -> Cell:
    return Cell(
        FIGURE + code,
        "(no output)" if text is None else text,
        images=images,
        footer=footer,
        needs=("matplotlib",),
    )


def rich(
    code: str,
    text: str | None = "(no output)",
    *images: Size | None,
    footer: str = "",
    **more: object,
) -> Cell:
    code = "from IPython.display import *\n" + code
    return Cell(code, text, images=images, footer=footer, **more)  # type: ignore[arg-type]


def pillow(code: str, *images: Size | None, footer: str = "", text: str = "(no output)") -> Cell:
    code = "from PIL import Image as PI\nfrom IPython.display import Image, display\n" + code
    return Cell(code, text, images=images, footer=footer, needs=("PIL",))


VALUES = [
    Cell("6 * 7", "Out: 42"),
    Cell("'text'", "Out: 'text'"),
    Cell("print('a'); 'b'", "a\nOut: 'b'"),
    Cell("None"),
    Cell("x1 = 5", footer="vars: x1 5"),
    Cell("[1, 2];"),
    Cell("'a\\nb'", "Out: 'a\\nb'"),
    Cell("print('ä€😀')", "ä€😀"),
    Cell("list(range(40))", "Out:\n[" + ",\n ".join(map(str, range(40))) + "]"),
    Cell("{'a': 1, 'b': [1, 2]}", "Out: {'a': 1, 'b': [1, 2]}"),
    Cell("1 / 0", None, has=("Error: ZeroDivisionError: division by zero (exit code 1)",)),
    Cell("import sys; print('e', file=sys.stderr)", "stderr:\ne"),
    Cell("print('x' * 30000)", None, has=("[... 10001 of 30001 characters left out ...]",)),
    Cell("'y' * 30000", None, has=("characters left out ...]",)),
    Cell("_", None, has=("Out:",)),
    Cell("class Plain: pass\nPlain()", None, has=("Out: <__main__.Plain at 0x",)),
    Cell("%%capture held\nprint('gone'); 1", footer="held CapturedIO"),
    Cell("import numpy as np; np.arange(3)", "Out: array([0, 1, 2])", needs=("numpy",)),
    Cell("open('r.txt', 'w').write('abc')", "Out: 3", footer="wrote: r.txt (3B)"),
    Cell("...", "Out: Ellipsis"),
    Cell("def twice(x): return 2 * x\ntwice?", None, has=("Out:\nSignature:", "twice(x)")),
    Cell("def twice(x): return 2 * x\n?twice", None, has=("Out:\nSignature:", "twice(x)")),
    Cell("def twice(x): return 2 * x\n%psource twice", "Out:\ndef twice(x): return 2 * x"),
    Cell("open('l.py', 'w').write('y = 1');\n%load l.py", "Out:\n# %load l.py\ny = 1"),
]

STREAMS = [
    Cell("for i in range(500): print(f'\\r{i}%', end='')", "499%"),
    Cell("print('abc\\rX')", "Xbc"),
    Cell("print('ab\\bc')", "ac"),
    Cell("print('a\\r\\nb\\r\\n', end='')", "a\nb"),
    Cell("print('\\x1b[31mred\\x1b[0m')", "red"),
    Cell("print('one\\ntwo\\x1b[A\\rONE\\n')", "ONE\ntwo"),
    Cell("print('wiped\\r\\x1b[Kleft')", "left"),
    Cell("print('50%\\r   \\r', end='')"),
    Cell("print('50%\\r   \\rdone')", "done"),
    Cell("print('\\x1b]0;title\\x07text')", "text"),
    Cell("print('x\\n' * 3)", "x\nx\nx"),
    Cell(
        "import sys\nfor i in range(300):\n    print(f'\\r{i}', end='', file=sys.stderr, flush=True)",
        "stderr:\n299",
    ),
    Cell(
        "import sys, time\nfor i in range(50):\n"
        "    sys.stdout.write(f'\\r{i + 1:3}/50 [' + '#' * i + ']'); time.sleep(0.002)",
        " 50/50 [" + "#" * 49 + "]",
    ),
    Cell("print(*range(3000), sep='\\n')", None, has=("0\n1\n2\n", "2998\n2999")),
    Cell(
        "for i in range(4):\n    print('outer', i)\n    for j in range(9): print(f'\\r  {j}', end='')\n"
        "    print('\\r   \\r\\x1b[A', end='')",
        "outer 3",
    ),
    Cell(
        "from tqdm import tqdm\nfor i in tqdm(range(200)): pass",
        None,
        has=("100%|", "| 200/200 ["),
        lacks=("50%|",),
        needs=("tqdm",),
    ),
]

DISPLAYS = [
    rich("display(1, 'a', [2])", "1\n'a'\n[2]"),
    rich("for i in range(3): display(i)", "0\n1\n2"),
    rich("print('a', end=''); display('b'); print('c')", "a\n'b'\nc"),
    rich(
        "h = display('first', display_id=True); h.update('last')",
        "'last'",
        footer="h DisplayHandle",
    ),
    rich("h = display(0, display_id=True)\nfor i in range(300): h.update(i)", "299"),
    rich("h = display('a', display_id=True); print('b'); h.update('c')", "'c'\nb"),
    rich(
        "display('a', display_id='q'); display('b', display_id='q'); update_display('z', display_id='q')",
        "'z'\n'z'",
    ),
    rich("update_display('late', display_id='nobody')", "'late'"),
    rich(
        "a = display('a', display_id=True); b = display('b', display_id=True)\na.update(1); b.update(2)",
        "1\n2",
    ),
    rich("print('a'); clear_output(); print('b')", "b"),
    rich("print('a'); clear_output(wait=True)", "a"),
    rich("for i in range(200): clear_output(wait=True); print(i)", "199"),
    rich("display('x'); clear_output(); 5", "Out: 5"),
    rich("import sys; print('e', file=sys.stderr); clear_output(); print('k')", "k"),
    rich("display(DisplayHandle)", None, has=("DisplayHandle",)),
    rich("h = display(display_id=True); h.display('x')", "'x'", needs=()),
    rich(
        "hs = [display(i, display_id=True) for i in range(60)]; hs[3].update('new')",
        None,
        has=("2\n'new'\n4", "\n59"),
    ),
    rich("display({'text/plain': 'raw words'}, raw=True)", "raw words"),
    rich("display({'application/x-odd': 'q'}, raw=True)", "(shown as application/x-odd only)"),
    rich("display({'text/html': 7}, raw=True)", "7"),
    rich("display()"),
]

TEXTS = [
    rich("Markdown('# Head\\n\\n- *one*')", "Out:\n# Head\n\n- *one*"),
    rich("display(Markdown('**bold**'))", "**bold**"),
    rich("Latex(r'\\begin{x}a\\end{x}')", "Out: \\begin{x}a\\end{x}"),
    rich("Math('y^2')", "Out: $\\displaystyle y^2$"),
    rich("JSON({'a': [1, 'ä']})", 'Out:\n{\n  "a": [\n    1,\n    "ä"\n  ]\n}'),
    rich("HTML('<b>bold</b> &amp; plain')", "Out: bold & plain"),
    rich("HTML('<h2>T</h2><p>one<p>two')", "Out:\n## T\n\none\n\ntwo"),
    rich("HTML('<ul><li>a<li>b<ol><li>c</ol></ul>')", "Out:\n- a\n- b\n  1. c"),
    rich(
        "HTML('<table><tr><th>n</th><th>long</th></tr><tr><td>1</td><td>x y</td></tr></table>')",
        "Out:\nn  long\n1  x y",
    ),
    rich("HTML('<a href=\"https://example.org/x\">here</a>')", "Out: here (https://example.org/x)"),
    rich("HTML('<style>b{}</style><script>var a = 1</script>seen')", "Out: seen", lacks=("var a",)),
    rich("HTML('<pre>  a\\n    b</pre>')", "Out:\n  a\n    b"),
    rich("HTML('line<br>break<hr>')", "Out:\nline\nbreak\n---"),
    rich("HTML('<style>b{}</style>')"),
    Cell(
        "class Bold:\n    def _repr_html_(self): return '<b></b>'\nBold()",
        None,
        has=("Out: <__main__.Bold at",),
    ),
    rich("display({'image/png': '!'}, raw=True)", "Picture 1 is not shown: not a PNG file."),
    rich(
        'HTML(\'<img alt="a cat" src="data:image/png;base64,AAAA">\')',
        "Out: [image: a cat]",
        lacks=("AAAA",),
    ),
    rich(
        "HTML('<div id=\"p\"></div><script>draw()</script>')",
        "Out: An interactive page, kept as page-N.html",
        footer="wrote: page-N.html (",
    ),
    rich("IFrame('https://example.org', 300, 200)", "Out: [page: https://example.org]"),
    rich("Javascript('alert(1)')", "Out: (JavaScript, which nothing runs here)"),
    rich("Audio(b'\\0' * 200, rate=8000)", "Out: [audio]", lacks=("base64",)),
    Cell(
        "class Page:\n    def _repr_html_(self): return '<i>seen</i>'\nPage()",
        "Out: seen",
    ),
    Cell(
        "class Both:\n    def _repr_html_(self): return '<i>html</i>'\n"
        "    def __repr__(self): return 'own words'\nBoth()",
        "Out: own words",
    ),
    Cell(
        "class Marked:\n    def _repr_markdown_(self): return '*m*'\n    def _repr_html_(self): return 'h'\nMarked()",
        "Out: *m*",
    ),
    Cell("class Tex:\n    def _repr_latex_(self): return '$t$'\nTex()", "Out: $t$"),
    Cell(
        "class Bundle:\n    def _repr_mimebundle_(self, **kw): return {'application/json': {'k': 1}}\nBundle()",
        'Out:\n{\n  "k": 1\n}',
    ),
    Cell("import sympy; sympy.Symbol('q') ** 2", "Out: q**2", needs=("sympy",)),
    Cell(
        "import webbrowser; webbrowser.open('https://example.org/')",
        None,
        has=("There is no browser here to open https://example.org/",),
    ),
    Cell(
        "import tempfile, webbrowser, pathlib\np = pathlib.Path(tempfile.mkdtemp(), 'r.html')\n"
        "p.write_text('<p>r'); webbrowser.open(p.as_uri());",
        "There is no browser here; the page is page-N.html",
        footer="wrote: page-N.html (4B)",
    ),
    Cell(
        "import pathlib, webbrowser\npathlib.Path('own.html').write_text('x'); webbrowser.open('own.html');",
        "There is no browser here; the page is own.html",
    ),
]

FRAMES = [
    pandas(
        "pd.DataFrame({'a': [1, 2], 'b': [3.5, 4]})",
        "Out:\n   a    b\n0  1  3.5\n1  2  4.0\n\n[2 rows x 2 columns]",
    ),
    pandas("df = pd.DataFrame({'a': [1, 2]})", footer="df 2x1 [a]"),
    pandas(
        "pd.DataFrame({f'col{i}': range(5) for i in range(30)})",
        None,
        has=(*(f"col{i} " for i in range(29)), "[5 rows x 30 columns]"),
    ),
    pandas(
        "print(pd.DataFrame({f'c{i}': range(2) for i in range(30)}))",
        None,
        has=("c15", "c29"),
    ),
    pandas(
        "pd.DataFrame({f'w{i}': range(3) for i in range(200)})",
        None,
        has=("w0 ", "[3 rows x 200 columns]", "All 200 columns: w0, w1,", "w100, ", "w199"),
    ),
    pandas(
        "pd.DataFrame(np.arange(9000).reshape(3000, 3), columns=list('xyz'))",
        None,
        has=("x     y     z", "8997  8998  8999", "[3000 rows x 3 columns]"),
    ),
    pandas(
        "pd.DataFrame({f'long{i}': ['text' * 9] * 500 for i in range(35)})",
        None,
        has=("long34", "[500 rows x 35 columns]"),
        lacks=("left out",),
    ),
    pandas("pd.DataFrame()", None, has=("Empty DataFrame",)),
    pandas("pd.DataFrame({('a', 'x'): [1], ('a', 'y'): [2]})", None, has=("[1 rows x 2 columns]",)),
    pandas("m = pd.DataFrame({('a', 'x'): [1], ('b', 'y'): [2]})", footer="m 1x2 [a/x, b/y]"),
    pandas("display(pd.DataFrame({'k': [7]}))", "   k\n0  7\n\n[1 rows x 1 columns]"),
    pandas("pd.Series([1, 2], name='s')", "Out:\n0    1\n1    2\nName: s, dtype: int64"),
    pandas("s = pd.Series([1.5, 2])", footer="s Series 2 float64"),
    pandas(
        "pd.DataFrame({'a': range(100)}).describe().loc['count', 'a'] == 100", None, has=("True",)
    ),
    pandas(
        "with pd.option_context('display.max_columns', 4):\n    print(pd.DataFrame({f'c{i}': [1] for i in range(9)}))",
        None,
        has=("...", "[1 rows x 9 columns]"),
    ),
    pandas(
        "with pd.option_context('display.max_rows', None):\n    display(pd.DataFrame({'r': range(100)}))",
        None,
        has=("50  50",),
    ),
    pandas("class Sub(pd.DataFrame): pass\nSub({'a': [1]})", None, has=("[1 rows x 1 columns]",)),
    pandas("pd.DataFrame({'t': ['ä' * 3, '€']})", None, has=("0  äää\n1    €",)),
    pandas("pd.DataFrame({'a': [1]}).to_html() and None"),
    pandas("pd.concat([pd.DataFrame({'a': [1]})] * 2, axis=1)", None, has=("a  a",)),
    pandas(
        "big = pd.DataFrame(np.zeros((4, 9)), columns=[f'column_{i}' for i in range(9)])",
        footer="big 4x9 [column_0, column_1, column_2, column_3, column_4, +4]",
    ),
    styled(
        "pd.DataFrame({'city': ['Köln', 'a'], 'part': [0.1234, 0.5]}).style"
        ".format({'part': '{:.1%}'}).highlight_max('part').set_caption('Two  cities')",
        "Out:\nTwo cities\n   city  part\n0  Köln  12.3%\n1  a     50.0%",
    ),
    styled("display(pd.DataFrame({'a': [1], 'b': [2]}).style.hide(axis='index'))", "a  b\n1  2"),
    styled(
        "pd.DataFrame({'row': range(500)}).style.bar()",
        None,
        has=("row", "\n499  499\n", "[500 rows x 1 columns]"),
        lacks=("Styler", "\n250  250\n"),
    ),
    styled("pd.DataFrame(np.ones((2, 41))).style", None, has=("All 41 columns: 0, 1, 2, ",)),
    styled("s = pd.DataFrame({'a': [1]}).style", footer="vars: s Styler"),
    Cell(
        "import polars as pl; pl.DataFrame({f'c{i}': [i] for i in range(20)})",
        None,
        has=("shape: (1, 20)", "c11", "c19"),
        lacks=("…",),
        needs=("polars",),
    ),
    Cell(
        "import polars as pl; pf = pl.DataFrame({'a': [1]})", footer="pf 1x1 [a]", needs=("polars",)
    ),
]

FIGURES = [
    figure("", SHOWN, footer="fig Figure"),
    figure("plt.show()", SHOWN),
    figure(
        "plt.close(); plt.figure(figsize=(200, 100), dpi=100); plt.plot([1]); plt.show()",
        (1280, 640),
    ),
    figure(
        "plt.close(); big = plt.figure(figsize=(100, 200)); plt.plot([1]); display(big); plt.close(); big.dpi",
        (640, 1280),
        text="Out: 100.0",
    ),
    figure("fig", SHOWN),
    figure("plt.close()"),
    figure("plt.figure(figsize=(2, 2), dpi=100); plt.plot([1]);", SHOWN, (200, 200)),
    figure("plt.savefig('s1.png')", SHOWN, footer="wrote: s1.png ("),
    figure("plt.savefig('s2.png'); plt.show()", SHOWN, footer="wrote: s2.png ("),
    figure("plt.savefig('s3.png', dpi=300)", BIG),
    figure("fig.savefig('s4.png', bbox_inches='tight'); fig", None),
    figure("plt.savefig('s5.png'); plt.title('changed');", SHOWN, SHOWN),
    figure("plt.savefig('s6.png'); plt.close()", SHOWN),
    figure("plt.savefig('s7.pdf')", SHOWN, footer="wrote: s7.pdf ("),
    figure("plt.savefig('s8.pdf'); plt.savefig('s8.png'); plt.savefig('s8.svg')", SHOWN),
    figure("plt.savefig('/tmp/outside.png')", SHOWN),
    figure("import io; plt.savefig(io.BytesIO());", SHOWN),
    figure("plt.savefig('gone.png'); import os; os.unlink('gone.png')", SHOWN),
    figure("plt.savefig('s9')", SHOWN, footer="wrote: s9.png ("),
    figure(
        "import pathlib; fig.savefig(pathlib.Path('s10.png')); fig.savefig('s10b.png', dpi=200); plt.close()",
        SHOWN,
        (800, 600),
    ),
    figure(
        "for i in range(3):\n    plt.figure(figsize=(1, 1), dpi=100); plt.plot([i]); plt.show()\nNone",
        SHOWN,
        (100, 100),
        (100, 100),
        (100, 100),
    ),
    figure(
        "for i in range(5): plt.figure(figsize=(1, 1), dpi=100); plt.plot([i])",
        SHOWN,
        (100, 100),
        (100, 100),
        (100, 100),
        text="2 more pictures are not shown (VIVARIUM_MAX_IMAGES).",
    ),
    figure(
        "from IPython.display import display, clear_output\nfor i in range(6): clear_output(wait=True); display(fig)\nplt.close()",
        SHOWN,
    ),
    figure("h = display(fig, display_id=True); plt.plot([5]); h.update(fig); plt.close()", SHOWN),
    figure("display(fig); display(fig); plt.close()", SHOWN),
    figure("fig.set_size_inches(20, 15); None", (1280, 960)),
    figure(
        "%config InlineBackend.figure_formats = ['jpeg']\nNone",
        SHOWN,
        footer="wrote: picture-N.jpg (",
    ),
    figure("%config InlineBackend.figure_formats = ['png']\nNone", SHOWN),
    figure(
        "plt.close(); plt.switch_backend('agg')\nplt.figure(figsize=(3, 1), dpi=100); plt.plot([1]);",
        (300, 100),
    ),
    figure("print(1); 2", SHOWN, text="1\nOut: 2"),
    figure("fig.canvas.draw(); plt.savefig('s11.png')", SHOWN),
]

PICTURES = [
    pillow("PI.new('RGB', (60, 40), 'red')", (60, 40)),
    pillow("im = PI.new('L', (9, 8))", footer="im Image 9x8 L"),
    pillow("PI.new('RGBA', (6, 4)).show()", (6, 4)),
    pillow("PI.new('P', (9000, 100))", (1280, 14)),
    pillow(
        "from PIL import ImageShow; type(ImageShow._viewers[0]).__name__",
        text="Out: 'IPythonViewer'",
    ),
    pillow("PI.new('CMYK', (61, 40))", (61, 40)),
    pillow("PI.new('1', (62, 40))", (62, 40)),
    pillow("PI.new('P', (63, 40))", (63, 40)),
    pillow("PI.new('I;16', (64, 40)).save('deep.png')", (64, 40), footer="wrote: deep.png ("),
    pillow(
        "PI.new('RGB', (50, 20)).save('j.jpg', quality=90); Image('j.jpg')",
        (50, 20),
        footer="wrote: j.jpg (",
    ),
    pillow(
        "import io; b = io.BytesIO(); PI.new('RGB', (33, 21)).save(b, 'JPEG'); Image(data=b.getvalue())",
        (33, 21),
        footer="wrote: picture-N.jpg (",
    ),
    pillow(
        "PI.new('RGB', (30, 22)).save('g.gif'); Image('g.gif')", (30, 22), footer="wrote: g.gif ("
    ),
    pillow(
        "import io; b = io.BytesIO(); PI.new('RGB', (31, 22)).save(b, 'WEBP'); display({'image/webp': b.getvalue()}, raw=True)",
        (31, 22),
    ),
    pillow(
        "import io; b = io.BytesIO(); PI.new('RGB', (34, 24)).save(b, 'PNG'); Image(data=b.getvalue())",
        (34, 24),
    ),
    pillow("PI.new('RGB', (3000, 1500)).save('huge.png')", (1280, 640)),
    pillow("i = PI.new('RGB', (70, 41), 'blue'); i.save('same.png'); i", (70, 41)),
    pillow(
        "e = PI.Exif(); e[0x112] = 6; PI.new('RGB', (50, 23)).save('turned.jpg', exif=e); Image('turned.jpg')",
        (23, 50),
    ),
    Cell(
        "from IPython.display import display\ndisplay({'image/jpeg': 'AAAA'}, raw=True)",
        None,
        has=(
            "A picture, image/jpeg, kept as picture-N.jpg; it is not shown: it cannot be decoded",
        ),
        needs=("PIL",),
    ),
    Cell(
        "open('broken.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'0' * 50);",
        None,
        has=("Picture broken.png is not shown: ",),
        footer="broken.png (58B)",
    ),
    Cell(
        'from IPython.display import SVG; SVG(\'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="70"><circle r="9"/></svg>\')',
        images=((90, 70),),
        footer="wrote: picture-N.svg (",
        needs=("resvg_py",),
    ),
    Cell(
        'from IPython.display import SVG; SVG(\'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200000 200000"/>\')',
        None,
        has=("A picture, image/svg+xml, kept as picture-N.svg; it is not shown: ",),
    ),
    Cell(
        "from IPython.display import display; display({'image/svg+xml': '<svg'}, raw=True)",
        None,
        has=("A picture, image/svg+xml, kept as picture-N.svg; it is not shown: ",),
    ),
]

STAND_IN = """
import base64
from IPython.display import display
PNG = base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAUAAAADCAAAAAAq1MmPAAAAC0lEQVR4nGNggAEAAA8AAWGh+0gAAAAASUVORK5CYII=')
def make(name, module, **members):
    return type(name, (), dict(members, __module__=module))()
"""


def stand_in(code: str, text: str | None, *images: Size, footer: str = "") -> Cell:
    return Cell(STAND_IN + code, text, images=images, footer=footer)


# Kaleido starts it.
NO_CHROME = "import vivarium_kernel.plots as vp; vp.CHROMES = ()\n"

# Objects with the forms of what cannot be had everywhere, then the real ones.
CHARTS = [
    stand_in(
        "make('TopLevelMixin', 'altair.api', to_json=lambda s: 1 / 0, to_html=lambda s: '<p>c')",
        None,
        footer="wrote: chart-N.html (4B)",
    ),
    stand_in(
        "make('LayoutDOM', 'bokeh.models', x=1)",
        None,
    ),
    Cell(
        "import os, subprocess, vivarium_kernel.plots as vp\nwith vp.browser_path('/bin/echo'):\n"
        "    said = subprocess.check_output([os.environ['BROWSER_PATH'], 'a b'], text=True)\n"
        "said, 'BROWSER_PATH' in os.environ",
        r"Out: ('--no-zygote a b\n', False)",
    ),
    Cell(
        NO_CHROME
        + "import plotly.graph_objects as go; pfig = go.Figure(go.Scatter(y=[1, 2])); pfig",
        None,
        has=(
            "Out: Figure of plotly: no picture (kaleido needs Chrome",
            "the interactive page is chart-N.html",
        ),
        footer="wrote: chart-N.html (",
        needs=("plotly", "kaleido"),
    ),
    Cell(
        NO_CHROME + "import plotly.express as px; px.bar(x=['a'], y=[1]).show()",
        None,
        has=("the interactive page is chart-N.html",),
        needs=("plotly",),
    ),
    Cell(
        NO_CHROME + "import plotly.io as pio, plotly.graph_objects as go; pio.show(go.Figure())",
        None,
        has=("the interactive page is chart-N.html",),
        needs=("plotly",),
    ),
    Cell(
        "import altair as alt\nalt.Chart(alt.Data(values=[{'a': 1}])).mark_bar().encode(x='a:Q')",
        images=(None,),
        needs=("altair", "vl_convert"),
    ),
    Cell(
        "import altair as alt\nalt.Chart(alt.Data(values=[{'a': 1}])).mark_point().encode(x='a:Q').show()",
        images=(None,),
        needs=("altair", "vl_convert"),
    ),
    Cell(
        "from bokeh.plotting import figure, show; bp = figure(); bp.line([1], [2]); show(bp)",
        None,
        has=("figure of bokeh: no picture", "the interactive page is chart-N.html"),
        needs=("bokeh",),
    ),
    Cell(
        "from bokeh.plotting import figure; fb = figure(); fb.line([1], [2]); fb",
        None,
        has=("Out: figure of bokeh",),
        needs=("bokeh",),
    ),
    Cell(
        "import seaborn as sns; gr = sns.relplot(x=[1, 2], y=[3, 4]); gr.savefig('sea.png')",
        images=(None,),
        footer="wrote: sea.png (",
        needs=("seaborn",),
    ),
]

FOOTERS = [
    Cell("t = 'x' * 78", footer="t 78 chars"),
    Cell("one = 'x'", footer="one 1 char "),
    Cell("raw = b'abc'", footer="raw 3 bytes"),
    Cell("d = dict.fromkeys(range(2306))", footer="d 2306 keys"),
    Cell("d2 = {'a': 1, 'b': 2}", footer="d2 2 keys [a, b]"),
    Cell("d3 = {}", footer="d3 0 keys"),
    Cell("l = [1, 2]", footer="l 2 items"),
    Cell("s = {1}", footer="s 1 item "),
    Cell("import collections; c = collections.Counter('aab')", footer="c 2 keys [a, b]"),
    Cell("q = 10 ** 100", footer="q int of 333 bits"),
    Cell("pi2 = 6.28", footer="pi2 6.28"),
    Cell("n = None", footer="n None"),
    Cell("z = 1 + 2j", footer="z (1+2j)"),
    Cell("def f(a, b=1, *args, c, d='x', **kw): pass", footer="f f(a, b=1, *args, c, d='x', **kw)"),
    Cell("def g(a, /, b, *, c=None): pass", footer="g g(a, /, b, *, c=None)"),
    Cell("def h(x=[1]): pass", footer="h h(x=…)"),
    Cell("async def co(x): pass", footer="co async co(x)"),
    Cell("la = lambda x, y=2: x", footer="la lambda x, y=2"),
    Cell(
        "import functools\n@functools.cache\ndef cached(n): return n",
        footer="cached _lru_cache_wrapper",
    ),
    Cell(
        "import functools\ndef deco(f):\n    @functools.wraps(f)\n    def w(*a, **k): return f(*a, **k)\n    return w\n"
        "@deco\ndef inner(x, y): pass",
        footer="inner inner(x, y)",
    ),
    Cell("class K: pass", footer="K class"),
    Cell("k = type('K2', (), {})()", footer="k K2"),
    Cell("from math import sqrt", footer="sqrt=math.sqrt"),
    Cell("from pathlib import Path as P", footer="P=pathlib.Path"),
    Cell("import json as js", footer="js=json"),
    Cell("from pathlib import Path; place = Path('/data/x')", footer="place /data/x"),
    Cell("import datetime as dt; day = dt.date(2026, 1, 2)", footer="day 2026-01-02"),
    Cell("import datetime as dt; span = dt.timedelta(days=2)", footer="span 2 days, 0:00:00"),
    Cell("from decimal import Decimal; dec = Decimal('1.50')", footer="dec Decimal 1.50"),
    Cell("from fractions import Fraction; fr = Fraction(1, 3)", footer="fr 1/3"),
    Cell("gen = (i for i in [1])", footer="gen generator"),
    Cell("import re; pat = re.compile('a')", footer="pat Pattern"),
    Cell(
        "import numpy as np; grid = np.zeros((3, 4))",
        footer="grid ndarray 3x4 float64",
        needs=("numpy",),
    ),
    Cell(
        "import numpy as np; point = np.array(1)",
        footer="point ndarray scalar int64",
        needs=("numpy",),
    ),
    Cell("import numpy as np; f64 = np.float64(1.5)", footer="f64 float64 1.5", needs=("numpy",)),
    Cell(
        "import numpy as np; mx = np.ma.array([1, 2])",
        footer="mx MaskedArray 2 int64",
        needs=("numpy",),
    ),
    pandas("ix = pd.RangeIndex(3)", footer="ix RangeIndex 3 int64"),
    pandas("ts = pd.Timestamp('2026-01-02')", footer="ts 2026-01-02 00:00:00"),
    pandas(
        "dated = pd.DataFrame({pd.Timestamp('2026-01-02'): [1]})", footer="dated 1x1 [2026-01-02]"
    ),
    Cell("grown = [1]\nolder = 2\nnewer = 3", footer="newer 3  older 2  grown 1 item "),
    Cell("a1, b1, c1 = [1], 2, 3\n", footer="c1 3  b1 2  a1 1 item "),
    Cell(
        "from sklearn.linear_model import LinearRegression; lr = LinearRegression()",
        footer="lr LinearRegression not fitted",
        needs=("sklearn",),
    ),
    Cell(
        "from sklearn.linear_model import LinearRegression; lr2 = LinearRegression().fit([[1], [2]], [1, 2])",
        footer="lr2 LinearRegression fitted",
        needs=("sklearn",),
    ),
    Cell(
        "from sklearn.pipeline import make_pipeline; from sklearn.preprocessing import StandardScaler\npl2 = make_pipeline(StandardScaler()).fit([[1], [2]])",
        footer="pl2 Pipeline fitted",
        needs=("sklearn",),
    ),
    Cell(
        "import sys, types\nsk = types.ModuleType('sklearn.base'); sk.BaseEstimator = type('BaseEstimator', (), {})\n"
        "real = sys.modules.get('sklearn.base'); sys.modules['sklearn.base'] = sk\n"
        "model = type('Model', (sk.BaseEstimator,), {'__slots__': ()})()\nmodel.coef_ = 1",
        footer="model Model fitted",
        needs=("!sklearn",),
    ),
]

# Objects that would do harm if the footer asked them anything.
HOSTILE = """
import time, os
calls = []
def spy(name):
    def method(*args, **kwargs):
        calls.append(name); os.write(1, b'SPY'); raise RuntimeError(name)
    return method
SPIES = {n: spy(n) for n in ('__repr__', '__str__', '__len__', '__iter__', '__getattribute__', '__eq__', '__hash__',
                             '__bool__', '__format__', '__getattr__', '__contains__', '__getitem__', '__dir__')}
"""


def hostile(code: str, footer: str) -> Cell:
    return Cell(
        HOSTILE + code + "\nimport builtins; builtins.seen_calls = calls",
        footer=footer,
        lacks=("SPY",),
    )


HOSTILES = [
    hostile("v1 = type('Quiet', (), SPIES)()", "v1 Quiet"),
    hostile("v2 = type('Listlike', (list,), SPIES)()", "v2 Listlike"),
    hostile("v3 = type('Dictlike', (dict,), SPIES)()", "v3 Dictlike"),
    hostile(
        "v4 = type('Strlike', (str,), {k: v for k, v in SPIES.items() if k != '__hash__'})()",
        "v4 Strlike",
    ),
    hostile(
        "Meta = type('Meta', (type,), {'__hash__': spy('h'), '__eq__': spy('e'), '__instancecheck__': spy('i'), '__name__': property(spy('n')), '__module__': 'm'})\nv5 = Meta('Odd', (), {})()",
        "v5 Odd",
    ),
    hostile(
        "v6 = type('Prop', (), {'__dict__': property(spy('d')), 'shape': property(spy('s')), 'columns': property(spy('c')), '__class__': property(spy('k'))})()",
        "v6 Prop",
    ),
    hostile(
        "v7 = type('Sleepy', (), {'__repr__': lambda s: time.sleep(60), '__len__': lambda s: 10 ** 12})()",
        "v7 Sleepy",
    ),
    hostile("v8 = type('Huge', (), {'__repr__': lambda s: 'x' * 10 ** 9})()", "v8 Huge"),
    hostile("v9 = []; v9.append(v9)", "v9 1 item "),
    hostile(
        "v10 = {type('Key', (), {'__hash__': lambda s: 1, '__repr__': spy('r')})(): 1}",
        "v10 1 key ",
    ),
    hostile(
        "class Fake(type(os)):\n    __getattribute__ = spy('module')\nv11 = Fake('v11')", "v11"
    ),
    hostile("def v12(): pass\nv12.__wrapped__ = type('W', (), SPIES)()", "v12 v12()"),
    hostile("def v13(a=type('D', (), SPIES)()): pass", "v13 v13(a=…)"),
    hostile(
        "def v14(): pass\nv14.__name__ = type('N', (str,), {'__str__': spy('s'), '__format__': spy('f'), '__eq__': str.__eq__, '__hash__': str.__hash__})('n')",
        "v14 ",
    ),
    hostile(
        "import collections\nv15 = collections.OrderedDict(a=type('V', (), SPIES)())",
        "v15 1 key [a]",
    ),
    hostile("v16 = type('Slots', (), {'__slots__': ('__dict__',), **SPIES})()", "v16 Slots"),
    Cell(
        "class Loud:\n    def __repr__(self): print('said'); return 'loud'\nloud = Loud()",
        footer="loud Loud",
        lacks=("said",),
    ),
    Cell(
        "class Deep:\n    def __repr__(self): return repr(self)\ndeep = Deep()", footer="deep Deep"
    ),
    Cell(
        "class Net:\n    @property\n    def shape(self):\n        import socket; socket.create_connection(('192.0.2.1', 9), 30)\nnet = Net()",
        footer="net Net",
    ),
    pandas(
        "frame = pd.DataFrame({'a': [1]})\nframe.columns = [type('Label', (), {'__repr__': lambda s: 1 / 0, '__str__': lambda s: 1 / 0})()]",
        footer="frame 1x1 [Label]",
    ),
    pandas(
        "obj = np.array([type('O', (), {'__repr__': lambda s: 1 / 0})()], dtype=object)",
        footer="obj ndarray 1 object",
    ),
    # A display does run what the object itself defines; what goes wrong is told.
    Cell(
        "class Bad:\n    def __repr__(self): raise ValueError('no repr')\nBad()",
        None,
        has=("ValueError: no repr",),
    ),
    Cell(
        "class Wide:\n    def __repr__(self): return 'w' * 10 ** 8\nWide()",
        None,
        has=("left out ...]",),
    ),
    Cell("class BadHtml:\n    def _repr_html_(self): return 5\nBadHtml()", None, has=("BadHtml",)),
    Cell("print('calm')", "calm"),
]

GROUPS: dict[str, list[Cell]] = {
    "value": VALUES,
    "stream": STREAMS,
    "display": DISPLAYS,
    "text": TEXTS,
    "frame": FRAMES,
    "figure": FIGURES,
    "picture": PICTURES,
    "chart": CHARTS,
    "footer": FOOTERS,
    "hostile": HOSTILES,
}
