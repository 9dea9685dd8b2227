"""The bills of materials: valid CycloneDX, and complete according to cargo."""

import json
import subprocess
import tomllib

import pytest
from conftest import CHECKOUT, PROGRAMS
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def made(crate: str) -> bytes:
    return subprocess.run([CHECKOUT / "packaging" / "sbom", crate], check=True, stdout=subprocess.PIPE, timeout=120).stdout


@pytest.mark.parametrize("crate", PROGRAMS)
def test_it_is_valid_and_has_every_crate_with_purl_licence_and_checksum(crate):
    text = made(crate)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.decode())
    assert wrong is None, wrong

    bill = json.loads(text)
    assert bill["metadata"]["component"]["name"] == crate
    components = [bill["metadata"]["component"], *bill["components"]]
    found = {(c["name"], c["version"]) for c in components}
    command = ["cargo", "tree", "--locked", "-p", crate, "-e", "normal", "--prefix", "none", "--format", "{p}"]
    tree = subprocess.run(command, cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True).stdout
    expected = {(line.split()[0], line.split()[1].removeprefix("v")) for line in tree.splitlines() if line}
    assert found == expected
    assert len(components) == len(found) > 30

    lock = tomllib.loads((CHECKOUT / "Cargo.lock").read_text())["package"]
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock}
    for c in components:
        assert c["purl"].startswith(f"pkg:cargo/{c['name']}@")
        assert c["licenses"][0]["expression"]
        checksum = checksums[c["name"], c["version"]]
        # Our own crates have no checksum: they are the sources themselves.
        assert (checksum is None) == c["name"].startswith("gleaner-")
        assert [h["content"] for h in c.get("hashes", [])] == ([checksum] if checksum else [])

    # Every used component is listed, and every listed component is used.
    references = {c["bom-ref"] for c in components}
    uses = {d["ref"]: d["dependsOn"] for d in bill["dependencies"]}
    assert set(uses) == references
    used = {reference for on in uses.values() for reference in on}
    assert used == references - {components[0]["bom-ref"]}


def test_the_same_sources_give_the_same_bytes():
    assert made("gleaner-paging") == made("gleaner-paging")
