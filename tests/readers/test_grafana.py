"""Every query of packaging/grafana/gleaner.json, answered by a Prometheus that scrapes a collector of sixty hosts, a commons of two
hosts, and a recruiter."""

import json
import re
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass

import pytest
from collector import Collector
from commons import BLOCKS, Commons
from conftest import CHECKOUT
from prometheus import PATIENCE_S, Server
from recruiter import CommonsMember, Recruiter
from test_prometheus import BIN
from test_recruiter_api import older

DASHBOARD = json.loads((CHECKOUT / "packaging" / "grafana" / "gleaner.json").read_text())
HOSTS = 60
#: Two of the hosts that collector/examples/hosts.rs posts; one name needs escaping in patterns.
CHOSEN = ["host-00009", '<b>otter</b> & "friends"']
#: Members of a commons need no memory server with this setting of the recruiter.
LIMIT = 'member_limit = "1GiB"'
#: One more scrape than a rate needs.
SCRAPES = 3
#: Values of the variables of the dashboard and of Grafana.
VARIABLES = {
    "job": "gleaner",
    "collector": "east",
    "commons_job": "gleaner-commons",
    "commons": "tools",
    "host": "|".join(re.escape(name).replace("\\ ", " ") for name in CHOSEN),
    "__rate_interval": "1m",
}


def replaced(query: str) -> str:
    """Replaces variables as Grafana does: backslashes and quotes in a label's pattern are escaped again."""

    def value(found: re.Match) -> str:
        return VARIABLES[found[1]].replace("\\", "\\\\").replace('"', '\\"')

    return re.sub(r"\$(\w+)", value, query)


def panels() -> list[dict]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


QUERIES = [(panel["title"], target["expr"]) for panel in panels() for target in panel["targets"]]


@dataclass(frozen=True)
class Watched:
    """A collector, a commons and a recruiter, and the Prometheus that scrapes them."""

    collector: Collector
    commons: Commons
    recruiter: Recruiter
    prometheus: Server

    def value(self, query: str) -> float:
        [found] = self.prometheus.query(query)
        return float(found["value"][1])

    def status(self) -> dict:
        return json.load(self.collector.open("status"))


@pytest.fixture(scope="module")
def watched(programs, tmp_path_factory) -> Watched:
    """A collector with all that it can report: a certificate, a copy in an object store, a refusal, hosts of all kinds."""
    folder = tmp_path_factory.mktemp("grafana")
    pki, mirror = folder / "pki", folder / "mirror"
    mirror.mkdir()
    names = ["--name", "localhost", "--name", "127.0.0.1"]
    subprocess.run([programs / "gleaner", "pki", "init", pki, *names], check=True, capture_output=True)
    more = f'name = "east"\nlisten = "127.0.0.1:0"\npki = "{pki}"\npublish = "file://{mirror}"\n'
    with Collector(programs, folder, more) as collector:
        posted = [programs / "examples" / "hosts", collector.url, str(HOSTS)]
        subprocess.run(posted, check=True, capture_output=True, timeout=PATIENCE_S)
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{collector.url}/v1/batches", data=b"none", timeout=PATIENCE_S)
        collector.seal()
        with Commons(programs, folder / "commons", pki, 2) as commons, Recruiter(programs, folder / "recruiter", 0, LIMIT) as recruiter:
            members = [CommonsMember(recruiter.url, "tools", number, BLOCKS) for number in (1, 2)]
            assert all(host.read() == commons.contents for host in commons.hosts)
            targets = {"gleaner": collector.url, "recruiter": recruiter.url}
            targets = {job: url.removeprefix("http://") for job, url in targets.items()}
            with Server(BIN, folder, targets | {"gleaner-commons": commons.addresses()}) as prometheus:
                prometheus.wait_until("count(gleaner_collector_last_published_timestamp_seconds)", 1)
                prometheus.wait_until(f"count_over_time(gleaner_collector_batches_total[5m]) >= {SCRAPES}", SCRAPES)
                prometheus.wait_until(f"min(count_over_time(gleaner_commons_puts_total[5m])) >= {SCRAPES}", SCRAPES)
                prometheus.wait_until("max(gleaner_recruiter_commons_members)", len(members))
                prometheus.wait_until("max(gleaner_recruiter_commons_epoch)", 1)
                yield Watched(collector, commons, recruiter, prometheus)
            for member in members:
                member.leave()


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=[f"{i}-{title}" for i, (title, _) in enumerate(QUERIES)])
def test_every_query_has_an_answer(watched, title, query):
    found = watched.prometheus.query(replaced(query))
    assert found, f"{title}: nothing answers {replaced(query)}"
    assert all(float(series["value"][1]) == float(series["value"][1]) for series in found), found


def test_variables_have_values(watched):
    asked = [v for v in DASHBOARD["templating"]["list"] if v["type"] == "query"]
    assert {v["name"] for v in asked} | {"__rate_interval"} == set(VARIABLES)
    for variable in asked:
        query, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
        found = watched.prometheus.query(f"count by ({label}) ({replaced(query)})")
        values = {series["metric"][label] for series in found}
        expected = {"job": {"gleaner"}, "collector": {"east"}, "host": set(CHOSEN), "commons_job": {"gleaner-commons"}, "commons": {"tools"}}
        assert values >= expected[variable["name"]], variable["name"]


def test_names_that_need_escaping_are_chosen_alone(watched):
    found = watched.prometheus.query(replaced('gleaner_host_info{host_name=~"$host"}'))
    assert {series["metric"]["host_name"] for series in found} == set(CHOSEN)


def test_what_is_shown_is_what_the_status_says(watched):
    memories = [host["memory"] for host in watched.status()["hosts"]]
    assert len(memories) == HOSTS
    of = shown()
    assert watched.value(of["Reporting hosts"]) == HOSTS
    assert watched.value(of["Idle hosts"]) == sum(m["state"] == "idle" for m in memories)
    for title, key in [
        ("Physical memory", "physical_bytes"),
        ("Available memory", "available_bytes"),
        ("Harvestable memory", "harvestable_bytes"),
        ("Quota", "quota_bytes"),
    ]:
        assert watched.value(of[title]) == sum(m[key] for m in memories), title
    assert watched.value("sum(gleaner_host_memory_bytes)") == watched.value("sum(gleaner_host_physical_bytes)")


def shown() -> dict[str, str]:
    """The first query of each panel, by its title."""
    return {panel["title"]: replaced(panel["targets"][0]["expr"]) for panel in panels()}


def test_reads_of_the_commons_are_those_of_its_hosts(watched):
    of = shown()
    statuses = [host.status() for host in watched.commons.hosts]
    total = lambda key: sum(status[key] for status in statuses)  # noqa: E731
    assert watched.value(of["Hosts with a commons"]) == len(statuses)
    # The second host got blocks from memory: all but those whose home never ran.
    saved = total("local_read_bytes") + total("cluster_read_bytes")
    assert watched.value(of["Saved reads of the source"]) == saved > 0
    assert watched.value(of["Share from memory"]) == pytest.approx(saved / (saved + total("source_read_bytes")))
    for panel, label, expected in [
        ("gleaner_commons_reads_total", "from", {place: total(f"{place}_reads_count") for place in ("local", "cluster", "source")}),
        ("gleaner_commons_bytes_total", "from", {place: total(f"{place}_read_bytes") for place in ("local", "cluster", "source")}),
    ]:
        found = watched.prometheus.query(f"sum by ({label}) ({panel})")
        assert {series["metric"][label]: float(series["value"][1]) for series in found} == expected, panel
    assert watched.value(of["Wrong blocks"]) == 0


def test_a_member_that_never_ran_is_not_asked(watched):
    """A reader asks each block's home, and a third of the blocks have the home that never ran."""
    of = shown()
    peers = [peer for host in watched.commons.hosts for peer in host.status()["peers"]]
    away = {peer["host_id"] for peer in peers if peer["fault"] is not None}
    assert away == {watched.commons.absent_id}, peers
    # A member is asked again after a minute: the largest value since the reads counts.
    ever = lambda title: f"max_over_time(({of[title]})[10m:1s])"  # noqa: E731
    assert watched.value(ever("Hosts not asked")) == 1
    found = watched.prometheus.query(ever("Members by which a host is not asked"))
    refusing = {series["metric"]["host_id"]: float(series["value"][1]) for series in found}
    assert refusing.pop(watched.commons.absent_id) >= 1
    assert refusing == {host.host_id: 0 for host in watched.commons.hosts}


def test_epochs_are_those_of_the_recruiter(watched):
    of = shown()
    [view] = watched.recruiter.get("/v1/commons")["commonses"]
    assert watched.value(of["Members linked to a recruiter"]) == len(view["members"]) == 2
    assert abs(watched.value(of["Time since the newest epoch"])) < 60
    said = watched.prometheus.query("gleaner_recruiter_commons_epoch")
    assert [series["metric"]["commons"] for series in said] == ["tools"]


def test_top_lists_the_commons_that_the_recruiter_knows(watched, gleaner):
    addresses = ["--collector", watched.collector.url, "--recruiter", watched.recruiter.url]
    [view] = json.loads(gleaner("top", *addresses, "--json"))["commonses"]
    assert view["name"] == "tools" and [member["frames"] for member in view["members"]] == [BLOCKS] * 2
    assert "commons tools: 2 members with 5.0 MiB; epoch " in gleaner("top", *addresses, "--once").decode()


def test_the_documentation_has_every_metric_of_the_commons_and_alerts_that_are_rules(watched, tmp_path):
    documented = (CHECKOUT / "docs" / "commons.md").read_text()
    with urllib.request.urlopen(f"{watched.commons.hosts[0].url}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    names = [f"{name}_total" if kind == "counter" else name for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)]
    assert names and [name for name in names if f"`{name}" not in documented] == []
    checked = subprocess.run([BIN / "promtool", "check", "metrics"], input=older(text), text=True, capture_output=True, timeout=PATIENCE_S)
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout + checked.stderr
    [block] = re.findall(r"^```yaml\n(groups:.*?)^```$", documented, re.MULTILINE | re.DOTALL)
    rules = tmp_path / "rules.yml"
    rules.write_text(block)
    checked = subprocess.run([BIN / "promtool", "check", "rules", rules], text=True, capture_output=True, timeout=PATIENCE_S)
    assert checked.returncode == 0 and "5 rules found" in checked.stdout, checked.stdout + checked.stderr
    for expression in re.findall(r"^ +expr: (.+)$", block, re.MULTILINE):
        # Without its limit, each rule has a value here: it names series that exist.
        assert watched.prometheus.query(re.split(r" [<>=]+ [\d.]+$", expression)[0]), expression


def test_every_series_of_hosts_is_shown(watched):
    """All series of hosts exist for the dashboard; of the collector's, it shows what fits."""
    with urllib.request.urlopen(f"{watched.collector.url}/metrics", timeout=PATIENCE_S) as answer:
        names = set(re.findall(r"^(gleaner_host_\w+)\{", answer.read().decode(), re.MULTILINE))
    shown = " ".join(query for _, query in QUERIES)
    assert names and {name for name in names if name not in shown} == set()
