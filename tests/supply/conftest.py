"""Paths, and the crates whose programs are packaged."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = ["gleaner-agent", "gleaner-cli", "gleaner-collector", "gleaner-commons", "gleaner-paging", "gleaner-recruiter"]
