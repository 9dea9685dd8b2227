"""Ports and dependencies named in pages, command help and packages, compared with the code."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
read = lambda path: (CHECKOUT / path).read_text()  # noqa: E731


def test_the_clerks_page_and_help_name_the_recruiters_ports():
    tls = re.search(r"RECRUITER_PORT: u16 = (\d+);", read("lab/src/address.rs"))[1]
    plain = re.search(r'DEFAULT_LOCAL_LISTEN: &str = "127\.0\.0\.1:(\d+)"', read("recruiter/src/config.rs"))[1]
    assert f'# listen = "0.0.0.0:{tls}"' in read("docs/recruiter.toml")
    assert f'# local_listen = "127.0.0.1:{plain}"' in read("docs/recruiter.toml")
    named = 0
    for path in ("docs/clerk.md", "docs/clerk.toml", "docs/regions.md", "docs/memoryd.toml", "paging/src/clerk/args.rs"):
        for scheme, port in re.findall(r"(https?)://[\w.]+:(\d+)", read(path)):
            assert port == (tls if scheme == "https" else plain), (path, scheme, port)
            named += 1
    assert named > 4


def test_the_command_brings_the_zones_of_the_weekly_report():
    """`gleaner report` computes weeks in the fleet's time zone: /usr/share/zoneinfo is from tzdata."""
    cli = re.search(r"^Package: gleaner-cli\n(?:.+\n)*", read("packaging/debian/control"), re.M)[0]
    assert re.search(r"^Depends: .*\btzdata\b", cli, re.M), cli
    assert re.search(r"^Requires: tzdata$", read("packaging/rpm/gleaner.spec"), re.M)


def test_nobody_is_told_to_throw_an_administrators_drop_ins_away():
    pages = [*CHECKOUT.glob("docs/*.md"), CHECKOUT / "README.md", *(path for room in ("cli", "doctor", "agent") for path in CHECKOUT.glob(f"{room}/src/**/*.rs"))]
    assert len(pages) > 100
    for path in pages:
        for line in path.read_text().splitlines():
            is_comment = line.lstrip().startswith("//")
            assert is_comment or "systemctl revert" not in line, path
