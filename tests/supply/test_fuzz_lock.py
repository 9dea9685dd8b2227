"""fuzz/Cargo.lock, held to the root's: the decoders are fuzzed with the library versions that are shipped."""

import tomllib
from pathlib import Path

from conftest import CHECKOUT

# What only the fuzzer needs.
OWN = {"arbitrary", "gleaner-fuzz", "libfuzzer-sys"}


def locked(path: Path) -> set[tuple[str, str]]:
    return {(package["name"], package["version"]) for package in tomllib.loads(path.read_text())["package"]}


def test_fuzzed_libraries_are_those_that_are_shipped():
    fuzzed = {package for package in locked(CHECKOUT / "fuzz" / "Cargo.lock") if package[0] not in OWN}
    assert len(fuzzed) > 100
    others = fuzzed - locked(CHECKOUT / "Cargo.lock")
    assert not others, f"copy Cargo.lock to fuzz/, then run `cargo metadata --manifest-path fuzz/Cargo.toml`: {sorted(others)}"
