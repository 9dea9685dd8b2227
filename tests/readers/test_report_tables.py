"""Companion files and mail of a week's report, as other programs read them."""

import email
import email.policy
import json
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd
import pytest

HOSTS = 3
TITLE = "Räume 1–3: “idle”, a title so long that it is folded in the header of a message\nBcc: x@example.org"


@dataclass(frozen=True)
class Week:
    folder: Path
    message: bytes

    @property
    def document(self) -> dict:
        return json.loads((self.folder / "2026-W47.json").read_text())

    def table(self, name: str) -> Path:
        return self.folder / "2026-W47-tables" / f"{name}.csv"


@pytest.fixture(scope="module")
def week(gleaner, tmp_path_factory) -> Week:
    folder = tmp_path_factory.mktemp("week")
    dataset, reports, sendmail = folder / "dataset", folder / "reports", folder / "sendmail"
    sendmail.write_text(f"#!/bin/sh\ncat >'{folder}/message'\n")
    sendmail.chmod(0o755)
    fleet = ["--hosts", str(HOSTS), "--days", "14", "--start", "2026-11-09", "--interval", "10m"]
    gleaner("synth", "-o", dataset, *fleet)
    mail = ["--mail", "Räte <lab@example.org>", "--mail-from", "gleaner@example.org", "--sendmail", sendmail]
    gleaner("report", dataset, "--week", "2026-W47", "--title", TITLE, "--folder", reports, *mail)
    return Week(reports, (folder / "message").read_bytes())


def test_every_table_is_read_by_pandas_and_duckdb_as_the_json_has_it(week):
    tables = week.document["tables"]
    assert len(tables) > 5
    for name, table in tables.items():
        rows = table["rows"]
        frame = pd.read_csv(week.table(name))
        columns = list(frame.columns)
        assert len(frame) == len(rows), name
        assert all(sorted(row) == sorted(columns) for row in rows), name
        for column in columns:
            values = [row[column] for row in rows]
            numbers = [v for v in values if isinstance(v, int | float)]
            if len(numbers) == len(values):
                assert frame[column].tolist() == pytest.approx(numbers, rel=1e-12), (name, column)
        query = f"SELECT count(*), count(COLUMNS(*)) FROM read_csv('{week.table(name)}', header = true)"
        counted = duckdb.sql(query).fetchall()[0]
        assert counted[0] == len(rows), name
        absent = frame.notna().sum().tolist()
        assert list(counted[1:]) == absent, name


def test_each_host_has_a_row_in_units_that_its_columns_name(week):
    coverage = pd.read_csv(week.table("coverage"))
    assert len(coverage) == HOSTS
    monday = pd.Timestamp("2026-11-16", tz="UTC").timestamp() * 1000
    assert coverage["first_sample_time_ms"].min() >= monday
    assert coverage["last_sample_time_ms"].max() < monday + 7 * 86_400_000
    assert coverage["covered_share"].between(0, 1).all()


def test_the_message_is_one_that_mail_programs_understand(week):
    message = email.message_from_bytes(week.message, policy=email.policy.default)
    assert not message.defects
    assert message["To"].addresses[0].addr_spec == "lab@example.org"
    assert message["To"].addresses[0].display_name == "Räte"
    assert message["From"].addresses[0].addr_spec == "gleaner@example.org"
    assert message["Date"].datetime is not None
    assert message["Bcc"] is None and message["Cc"] is None
    assert message["Subject"].startswith(TITLE.replace("\n", " ") + ", Week 47 of 2026: ")
    text, page = list(message.iter_parts())
    assert text.get_content_type() == "text/plain"
    short = (week.folder / "2026-W47.md").read_text()
    assert text.get_content().replace("\r\n", "\n").startswith(short)
    assert page.get_content_type() == "text/html"
    assert page.get_filename() == "2026-W47.html"
    html = page.get_payload(decode=True)
    assert html == (week.folder / "2026-W47.html").read_bytes()
