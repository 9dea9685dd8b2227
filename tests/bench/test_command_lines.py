"""Command lines of the benches: every subcommand, option and key of a configuration that a bench gives to a program still exists."""

import re
import subprocess
from pathlib import Path

import pytest
from command_lines import BENCHES, CHECKOUT, WRAPPERS, Built, Command, Key, Word, commands, configured, faults, path_of, reference

#: Commands that are known to be in the benches. If one is no longer found, the finder has lost it, or the bench has changed.
KNOWN = {
    "agent": ["gleaner-agent run", "gleaner-agent export"],
    "analysis": ["gleaner analyze", "gleaner export", "gleaner synth"],
    "collector": ["gleaner-collector run"],
    "commons": ["gleaner-memoryd standalone", "bench/reclaim.py"],
    "commons_hosts": [
        "gleaner pki init",
        "gleaner pki issue",
        *(f"gleaner-commons {name}" for name in ("check-config", "mount", "run", "seal", "status")),
    ],
    "commons_lenders": ["gleaner pki issue", "gleaner-memoryd run", "gleaner-recruiter run"],
    "control": ["gleaner-clerk run", "gleaner-clerk status", "gleaner-memoryd standalone"],
    "heartbeat": ["gleaner-agent run"],
    "known": ["gleaner-agent run"],
    "latency": ["gleaner-clerk attach", "gleaner-clerk detach", "gleaner-clerk run", "gleaner-memoryd standalone"],
    "models": ["gleaner curve record"],
    "nbd": ["gleaner pki init", "gleaner pki issue", "gleaner-clerk run", "gleaner-memoryd standalone"],
    "owner_return": ["gleaner-agent run"],
    "parts": ["gleaner analyze", "gleaner merge"],
    "programs": ["gleaner-clerk attach", "gleaner-memoryd standalone"],
    "reclaim": ["gleaner-agent run", "gleaner-memoryd run"],
    "recruiter": ["gleaner-recruiter run"],
    "report": ["gleaner analyze", "gleaner report", "gleaner synth"],
    "s3": ["gleaner analyze"],
    "shutdown": ["gleaner-clerk run", "gleaner-memoryd run", "gleaner-recruiter run"],
    "soak": ["gleaner-agent run"],
    "soak_collector": ["gleaner pki init", "gleaner-collector run"],
    "swap": ["gleaner-clerk attach", "gleaner-clerk detach", "gleaner-clerk run", "gleaner-memoryd standalone"],
    "validate": ["gleaner curve calibrate", "gleaner curve measure", "gleaner curve record", "gleaner curve show"],
    "window": ["gleaner-clerk attach", "gleaner-clerk check-config", "gleaner-clerk run", "gleaner-memoryd standalone"],
}
#: Configurations that are known to be in the benches, with one key of each.
KNOWN_KEYS = {
    ("bench/commons_hosts.py", "gleaner-commons", "peer_timeout"),
    ("bench/commons_hosts.py", "gleaner-commons", "policy"),
    ("bench/commons_lenders.py", "gleaner-memoryd", "pages_socket"),
    ("bench/commons_lenders.py", "gleaner-recruiter", "reserve_share"),
    ("bench/shutdown.py", "gleaner-clerk", "on_revocation"),
    ("bench/shutdown.py", "gleaner-memoryd", "shrink_step"),
}
CALL = re.compile(r"\b(?P<bench>bench/\w+\.py)(?P<words>(?: +[^\s;|&`]+)+)")
PAGES = sorted(f"docs/{page.name}" for page in (CHECKOUT / "docs").glob("*.md"))
#: Files with command lines of benches.
CALLERS = [name for name in ("Makefile", "bench/README.md", "bench/run", "tests/soak", *PAGES) if CALL.search((CHECKOUT / name).read_text())]

MADE_UP = """
FLAGS = ["--fil"]

def serve(args, folder):
    old = ["--old", folder] if args.old else []
    command = [str(args.memoryd.resolve()), "run", "--stand-alone=1", f"--{args.option}", *old, *FLAGS]
    command += ["--socket", folder]
    url, server = "nbd://", args.programs / "gleaner-memoryd"
    site.serving("ws1", url, server, "standalonee", f"{args.size}MiB", "--socket", url)
    call(args.programs / "gleaner-memoryd", "run", "--socket", "--fill", "--", "program", "--its-option")
    subprocess.run(["fio", "--memoryd", args.memoryd, "--its-option"])
    with swap(args.clerk, ["--sockets", folder]):
        run([*command, "--last"])
    old = ["--of-another-program"]
    run(["fio", *old])

def configuration(folder):
    keys = {"old_size": 1} | {"listen": folder}
    keys |= {"wait": 2} if folder else {}
    keys["copies"] = 1
    (folder / "clerk.toml").write_text(settings(keys))
    return {"not": "of a program"}["not"]

def report(folder):
    return {"neither": 1}
"""


class MadeUp:
    """Interface of invented programs."""

    SUBCOMMANDS = {("gleaner-memoryd",): {"run", "standalone"}, ("gleaner-clerk",): {"attach"}}
    OPTIONS = {("gleaner-memoryd", "run"): {"--fill", "--socket"}, ("gleaner-memoryd",): {"--socket"}, ("gleaner-clerk", "attach"): {"--socket"}}

    def subcommands(self, path: tuple[str, ...]) -> set[str]:
        return self.SUBCOMMANDS.get(path, set())

    def accepts(self, path: tuple[str, ...], option: str) -> bool:
        return option in self.OPTIONS[path]


@pytest.fixture(scope="module")
def built() -> Built:
    return Built()


def of_bench(name: str) -> list[Command]:
    return commands(name, (CHECKOUT / name).read_text())


def test_the_finder_names_file_line_and_option_of_each_fault():
    found = [fault for command in commands("bench/new.py", MADE_UP) for fault in faults(command, MadeUp())]
    assert sorted(set(found)) == [
        "bench/new.py:12: `gleaner-clerk attach` does not accept `--sockets`",
        "bench/new.py:13: `gleaner-memoryd run` does not accept `--last`",
        "bench/new.py:2: `gleaner-memoryd run` does not accept `--fil`",
        "bench/new.py:5: `gleaner-memoryd run` does not accept `--old`",
        "bench/new.py:6: `gleaner-memoryd run` does not accept `--stand-alone`",
        "bench/new.py:6: `gleaner-memoryd run` gets the computed option `--…`: write it in full",
        "bench/new.py:9: `gleaner-memoryd` has no subcommand `standalonee`",
    ]


def test_the_finder_names_the_keys_of_a_configuration():
    assert configured("bench/new.py", MADE_UP) == [
        Key("bench/new.py", 18, "gleaner-clerk", "old_size"),
        Key("bench/new.py", 18, "gleaner-clerk", "listen"),
        Key("bench/new.py", 19, "gleaner-clerk", "wait"),
        Key("bench/new.py", 20, "gleaner-clerk", "copies"),
    ]


@pytest.mark.parametrize("name", sorted(BENCHES))
def test_the_programs_accept_the_command_lines_of_a_bench(name, built):
    found = of_bench(name)
    missed = set(KNOWN.get(Path(name).stem, [])) - {path_of(command, built) for command in found}
    assert not missed, f"{name}: not found any more"
    refused = [fault for command in found for fault in faults(command, built)]
    assert not refused, "\n".join(dict.fromkeys(refused))


def test_known_benches_and_wrappers_exist():
    assert {f"bench/{name}.py" for name in KNOWN} <= set(BENCHES)
    text = "\n".join((CHECKOUT / name).read_text() for name in BENCHES)
    assert all(re.search(rf"\bdef {name}\(", text) for name in WRAPPERS)


def test_a_misspelt_option_is_refused_and_a_hidden_one_accepted(built):
    assert built.accepts(("gleaner-memoryd", "standalone"), "--listen")
    assert built.accepts(("gleaner-memoryd", "standalone"), "--tls")
    assert not built.accepts(("gleaner-memoryd", "standalone"), "--lisen")
    assert not built.accepts(("bench/swap.py",), "--zswop")


@pytest.mark.parametrize("name", [name for name in sorted(BENCHES) if "ArgumentParser(" in (CHECKOUT / name).read_text()])
def test_a_bench_explains_itself(name, built):
    assert "--help" in built.text((name,))


@pytest.mark.parametrize("caller", CALLERS)
def test_command_lines_of_benches_have_options_of_their_help(caller, built):
    refused = []
    for number, line in enumerate((CHECKOUT / caller).read_text().splitlines(), 1):
        for match in CALL.finditer(line):
            words = [Word(number, text) for text in match["words"].split() if text.startswith("--")]
            refused += faults(Command(caller, match["bench"], tuple(words)), built)
    assert not refused, "\n".join(refused)


def test_the_makefile_has_command_lines_of_benches():
    benches = {match["bench"] for match in CALL.finditer((CHECKOUT / "Makefile").read_text())}
    assert {"bench/programs.py", "bench/reclaim.py", "bench/shutdown.py"} <= benches


def test_the_programs_know_the_keys_of_every_configuration(tmp_path):
    found = [key for name in sorted(BENCHES) for key in configured(name, (CHECKOUT / name).read_text())]
    assert KNOWN_KEYS <= {(key.file, key.program, key.name) for key in found}
    unknown = [f"{key.file}:{key.line}: {key.program} has no key `{key.name}`" for key in found if is_unknown(key.program, key.name, tmp_path)]
    assert not unknown, "\n".join(unknown)
    assert is_unknown("gleaner-clerk", "no_such_key", tmp_path)


def is_unknown(program: str, key: str, folder: Path) -> bool:
    """True if a program does not know this key. The value may be of a wrong type."""
    config = folder / "checked.toml"
    config.write_text(f"{key} = 1\n")
    done = subprocess.run([reference.PROGRAMS / program, "check-config", "--config", config], capture_output=True, text=True, timeout=60)
    return "unknown field" in done.stdout + done.stderr
