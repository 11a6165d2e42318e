"""The script `run`, with stand-ins for Python, Snakemake and TeX: set-up once, never half, arguments joined."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PYTHON = """#!/bin/bash
# a Python that makes environments: -VV, -c PROBE, -m venv FOLDER
case $1 in
  -VV) echo "Python 3.11 stand-in" ;;
  -c) exit 0 ;;
  -m) mkdir -p "$3/bin"; echo venv >> "$STUB_LOG"
      printf '#!/bin/bash\\necho pip >> "$STUB_LOG"; sleep 0.3; exit "${STUB_PIP:-0}"\\n' > "$3/bin/python"
      printf '#!/bin/bash\\nprintf "%%s|" snakemake "$@"\\n' > "$3/bin/snakemake"
      chmod +x "$3/bin/python" "$3/bin/snakemake" ;;
esac
"""
KPSEWHICH = '#!/bin/bash\n[ "${STUB_TEX:-yes}" = yes ] || exit 1\nprintf "%s\\n" "$@"\n'


class Sandbox:
    def __init__(self, folder: Path) -> None:
        self.root, self.cache, self.log = folder / "tree", folder / "cache", folder / "log"
        stubs = folder / "stubs"
        for path in (self.root / "requirements", stubs):
            path.mkdir(parents=True)
        shutil.copy(ROOT / "run", self.root)
        for name in ("core", "engines", "test"):
            (self.root / "requirements" / f"{name}.txt").write_text(f"{name}==1\n")
        ordinary = '#!/bin/bash\n[ "$1" = -u ] && echo 1000\n'
        texts = {"python3.11": PYTHON, "kpsewhich": KPSEWHICH, "id": ordinary}
        for name, text in {**texts, "latexmk": "#!/bin/sh\n", "pdflatex": "#!/bin/sh\n"}.items():
            (stubs / name).write_text(text)
            (stubs / name).chmod(0o755)
        self.env = {"PATH": f"{stubs}:{os.environ['PATH']}", "LOSSMAP_CACHE": str(self.cache), "HOME": str(folder)}

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.root / "run", *arguments],
            env={**self.env, "STUB_LOG": str(self.log), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **env: str) -> tuple[int, str, str]:
        child = self.start(*arguments, **env)
        out, err = child.communicate()
        return child.returncode, out, err

    def setups(self) -> list[str]:
        return self.log.read_text().split()


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "called"),
    [
        ("paper", "paper --cores all --config scale=small"),
        ("paper --config scale=smoke", "paper --cores all --config scale=smoke"),
        ("paper -n --config strict=true -j 2", "paper -n -j 2 --config strict=true scale=small"),
        ("paper --config a=1 scale=full -c1", "paper -c1 --config a=1 scale=full"),
        ("results/stage1", "results/stage1 --cores all"),
        ("results/stage1 -C x=1", "results/stage1 --cores all --config x=1"),
        ("paper --forcerun arm a", "paper --forcerun arm a --cores all --config scale=small"),
    ],
)
def test_snakemake_gets_one_config(sandbox: Sandbox, arguments: str, called: str) -> None:
    code, out, _ = sandbox.run(*arguments.split())
    assert code == 0
    assert out.strip("|").split("|") == ["snakemake", *called.split()]


def test_the_second_run_sets_nothing_up_and_says_nothing(sandbox: Sandbox) -> None:
    sandbox.run("results/stage1")
    code, _, err = sandbox.run("results/stage1")
    assert (code, err) == (0, "") and sandbox.setups() == ["venv", "pip"]


def test_changed_pins_make_another_environment(sandbox: Sandbox) -> None:
    sandbox.run("results/stage1")
    (sandbox.root / "requirements" / "core.txt").write_text("core==2\n")
    sandbox.run("results/stage1")
    assert sandbox.setups() == ["venv", "pip"] * 2


def test_a_failed_set_up_is_never_used_and_is_made_again(sandbox: Sandbox) -> None:
    code, out, err = sandbox.run("results/stage1", STUB_PIP="1")
    assert code == 1 and out == "" and "could not be made" in err
    assert not list(sandbox.cache.glob("venv-*/.complete"))
    assert sandbox.run("results/stage1")[0] == 0


def test_two_at_once_set_up_once(sandbox: Sandbox) -> None:
    both = [sandbox.start("results/stage1") for _ in range(2)]
    assert [child.wait() for child in both] == [0, 0]
    for child in both:
        child.communicate()
    assert sandbox.setups() == ["venv", "pip"]


def test_missing_tex_names_the_command(sandbox: Sandbox) -> None:
    code, out, err = sandbox.run("paper", STUB_TEX="no")
    assert code == 1 and out == ""
    assert "sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends latexmk" in err


def test_results_need_no_tex(sandbox: Sandbox) -> None:
    assert sandbox.run("results/stage1", STUB_TEX="no")[0] == 0


def test_nothing_asked_prints_the_usage(sandbox: Sandbox) -> None:
    code, _, err = sandbox.run()
    assert code == 1 and "usage" in err
