# SPDX-License-Identifier: MIT
"""A data analyst's afternoon, by chat alone: the official Python SDK places files, explores,
cleans a table with "NA" and ":" in it, charts it four ways with Chinese labels, writes an
Excel file and gets it back as a resource.

AFTERNOON=DIRECTORY keeps what was said and the pictures there, to be looked at.
"""

from __future__ import annotations

import base64
import io
import json
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from conftest import type_of_start
from harness import Daemon, png_size
from mcp import Client

SALES = """季度,北京,上海,广州,备注
2023Q1,"1,204.5",980,NA,
2023Q2,"1,310.0",1015,612,
2023Q3,:,1102,655.5,北京未报
2023Q4,"1,402.8","1,188",701,
2024Q1,"1,377.1",NA,690p,上海未报
2024Q2,"1,455.9","1,240",733,
2024Q3,"1,520.4","1,295",760,
2024Q4,"1,611.0","1,377",802.5,
"""
STAFF = """城市;员工;平均工资
北京;420;18,5
上海;380;17,9
广州;260;14,2
深圳;310;16,8
成都;190;11,3
"""
CHART = "from vivarium_charts import bar_chart, line_chart, scatter_chart\n"
EXCEL = """
with pd.ExcelWriter('销售报告.xlsx') as book:
    clean.to_excel(book, sheet_name='季度', index=False)
    year.to_excel(book, sheet_name='年度')
"""
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@dataclass
class Answer:
    text: str
    footer: str
    images: list[bytes]
    data: dict[str, Any]


@dataclass
class Chat:
    """Calls tools, and keeps what was said where it is to be kept."""

    client: Client
    keep: Path | None
    said: list[str] = field(default_factory=list)
    pictures: int = 0

    async def call(self, tool: str, **arguments: Any) -> Answer:
        result = await self.client.call_tool(tool, arguments)
        texts = [part.text for part in result.content if isinstance(part, types.TextContent)]
        parts = [part for part in result.content if isinstance(part, types.ImageContent)]
        images = [base64.b64decode(part.data) for part in parts]
        self.note(f"{tool} {json.dumps(arguments, ensure_ascii=False)}", texts, images)
        assert not result.is_error, texts
        footer = texts[1] if len(texts) > 1 else ""
        return Answer(texts[0], footer, images, result.structured_content or {})

    async def run(self, code: str) -> Answer:
        return await self.call("run_python", code=code)

    def note(self, asked: str, texts: list[str], images: list[bytes]) -> None:
        self.said += [f"> {asked}\n", *(f"```\n{text}\n```\n" for text in texts)]
        for image in images:
            self.pictures += 1
            self.said.append(f"[picture {self.pictures}, {png_size(image)}]\n")
            if self.keep:
                (self.keep / f"afternoon-{self.pictures}.png").write_bytes(image)
        if self.keep:
            (self.keep / "afternoon.md").write_text("\n".join(self.said))


async def place(chat: Chat) -> None:
    await chat.call("write_file", path="数据/销售.csv", content=SALES)
    staff = base64.b64encode(STAFF.encode("utf-16")).decode()
    await chat.call("write_file", path="数据/员工.csv", content=staff, encoding="base64")
    listed = await chat.call("list_files")
    assert {row["path"] for row in listed.data["files"]} == {"数据/销售.csv", "数据/员工.csv"}
    assert (await chat.call("read_text_file", path="数据/员工.csv")).text.startswith(STAFF)


async def explore(chat: Chat) -> None:
    seen = await chat.run(
        "import pandas as pd\nraw = pd.read_csv('数据/销售.csv', keep_default_na=False)\nraw"
    )
    for name in ("季度", "北京", "上海", "广州", "备注"):
        assert name in seen.text
    assert "raw 8x5 [季度, 北京, 上海, 广州, 备注]" in seen.footer
    await chat.run("raw.dtypes")


async def clean(chat: Chat) -> None:
    done = await chat.run("from vivarium_charts import clean_numeric\nclean = clean_numeric(raw)")
    for column in ("北京", "上海", "广州"):
        assert column in done.text
    kinds = await chat.run("clean.describe()")
    assert "count" in kinds.text
    counted = await chat.run("print(clean[['北京', '上海', '广州']].notna().sum().tolist())")
    assert counted.text.endswith("[7, 7, 7]")
    kept = await chat.run("print(clean['备注'].tolist() == raw['备注'].tolist())")
    assert kept.text.endswith("True")


async def chart(chat: Chat) -> None:
    drawings = [
        "line_chart(clean, x='季度', title='各城市季度销售额', ylabel='万元')",
        "year = clean.groupby(clean['季度'].str[:4])[['北京', '上海', '广州']].sum()\n"
        "bar_chart(year, title='年度销售额对比', ylabel='万元')",
        "staff = clean_numeric(pd.read_csv('数据/员工.csv', sep=';', encoding='utf-16'))\n"
        "bar_chart(staff, x='城市', y='员工', horizontal=True, title='各城市员工人数')",
        "scatter_chart(staff, x='员工', y='平均工资', title='员工人数与平均工资')",
    ]
    for number, code in enumerate(drawings):
        drawn = await chat.run((CHART if not number else "") + code)
        (image,) = drawn.images
        assert min(png_size(image)) >= 250
        assert "no font" not in drawn.text
        assert "line_chart=vivarium_charts.line_chart" in drawn.footer
        assert drawn.data["files"][0]["uri"].startswith("workspace:///")


async def hand_over(chat: Chat, daemon: Daemon) -> None:
    written = await chat.run(EXCEL)
    (file,) = written.data["files"]
    assert "wrote: 销售报告.xlsx" in written.footer
    shown = await chat.call("read_text_file", path="销售报告.xlsx")
    assert shown.text.startswith("--- sheet 季度: 9 x 5 ---\n季度,北京,上海,广州,备注\n")
    listed = {row.name: row for row in (await chat.client.list_resources()).resources}
    assert str(listed["销售报告.xlsx"].uri) == file["uri"]
    assert listed["销售报告.xlsx"].mime_type == XLSX
    (item,) = (await chat.client.read_resource(file["uri"])).contents
    assert isinstance(item, types.BlobResourceContents)
    book = base64.b64decode(item.blob)
    assert book == (daemon.work / "销售报告.xlsx").read_bytes()
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        pages = [name for name in archive.namelist() if name.endswith(".xml")]
        assert any("北京" in archive.read(name).decode() for name in pages)
    chat.note(f"resources/read {file['uri']}", [f"{item.mime_type}, {len(book)} bytes"], [])


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_an_afternoon(start: type_of_start, mode: str) -> None:
    daemon = start()

    async def main() -> None:
        async with Client(daemon.url, mode=mode) as client:
            keep = os.environ.get("AFTERNOON")
            chat = Chat(client, Path(keep) if keep else None)
            for part in (place, explore, clean, chart):
                await part(chat)
            await hand_over(chat, daemon)

    anyio.run(main)
