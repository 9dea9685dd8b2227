"""Every query of packaging/grafana/gleaner.json, answered by a Prometheus that scrapes a collector of sixty hosts."""

import json
import re
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass

import pytest
from collector import Collector
from conftest import CHECKOUT
from prometheus import PATIENCE_S, Server
from test_prometheus import BIN

DASHBOARD = json.loads((CHECKOUT / "packaging" / "grafana" / "gleaner.json").read_text())
HOSTS = 60
#: Two of the hosts that collector/examples/hosts.rs posts; one name needs escaping in patterns.
CHOSEN = ["host-00009", '<b>otter</b> & "friends"']
#: One more scrape than a rate needs.
SCRAPES = 3
#: Values of the variables of the dashboard and of Grafana.
VARIABLES = {
    "job": "gleaner",
    "collector": "east",
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
    """A collector, and the Prometheus that scrapes it."""

    collector: Collector
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
        with Server(BIN, folder, {"gleaner": collector.url.removeprefix("http://")}) as prometheus:
            prometheus.wait_until("count(gleaner_collector_last_published_timestamp_seconds)", 1)
            prometheus.wait_until(f"count_over_time(gleaner_collector_batches_total[5m]) >= {SCRAPES}", SCRAPES)
            yield Watched(collector, prometheus)


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
        expected = {"job": {"gleaner"}, "collector": {"east"}, "host": set(CHOSEN)}
        assert values >= expected[variable["name"]], variable["name"]


def test_names_that_need_escaping_are_chosen_alone(watched):
    found = watched.prometheus.query(replaced('gleaner_host_info{host_name=~"$host"}'))
    assert {series["metric"]["host_name"] for series in found} == set(CHOSEN)


def test_what_is_shown_is_what_the_status_says(watched):
    memories = [host["memory"] for host in watched.status()["hosts"]]
    assert len(memories) == HOSTS
    of = {panel["title"]: replaced(panel["targets"][0]["expr"]) for panel in panels()}
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


def test_every_series_of_hosts_is_shown(watched):
    """All series of hosts exist for the dashboard; of the collector's, it shows what fits."""
    with urllib.request.urlopen(f"{watched.collector.url}/metrics", timeout=PATIENCE_S) as answer:
        names = set(re.findall(r"^(gleaner_host_\w+)\{", answer.read().decode(), re.MULTILINE))
    shown = " ".join(query for _, query in QUERIES)
    assert names and {name for name in names if name not in shown} == set()
