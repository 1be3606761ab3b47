"""Corpora of several machines as one."""

import json
from pathlib import Path

import pytest

from framestorm_cli.conftest import FakePrograms, Run
from framestorm_cli.corpus import merging
from framestorm_cli.coverage.measuring import content_name

TEXT = "framestorm-input 1\n# {}\n"
PCS = ("frame::sender", "frame::sender_for_compiled_frame", "AsyncGetCallTrace")


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEXT.format(text))
    return path


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Path, Path]:
    one, two = tmp_path / "one", tmp_path / "two"
    put(one / "corpus" / "fuzz_stack" / "a.bin", "a")
    put(one / "corpus" / "fuzz_stack" / "b.bin", "bb")
    put(one / "corpus" / "fuzz_call" / "a.bin", "a")
    put(two / "fuzz_stack" / "other-name.bin", "a")
    put(two / "fuzz_stack" / "c.bin", "ccc")
    put(one / "artifacts" / "b01.bin", "crash")
    put(one / "artifacts" / "b01.txt", "its text")
    (one / "artifacts" / "b01.bin.json").write_text('{"signature": 1}')
    put(two / "artifacts" / "b07.bin", "crash")
    put(two / "known" / "null-word" / "input.bin", "described")
    (two / "known" / "null-word" / "expected.json").write_text("{}")
    return one, two


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_order_of_folders_is_of_no_account(
    framestorm: Run, machines: tuple[Path, Path], tmp_path: Path
) -> None:
    one, two = machines
    for name, folders in (("x", (one, two)), ("y", (two, one))):
        code, out, _ = framestorm(
            "corpus", "merge", *folders, "--into", tmp_path / name, "--no-prune"
        )
        assert code == 0
        assert "4 of 8 files are distinct; 2 crash artifacts, all kept" in out
    merged = tree(tmp_path / "x")
    assert merged == tree(tmp_path / "y")
    name = content_name(one / "corpus" / "fuzz_stack" / "a.bin")
    crash = content_name(one / "artifacts" / "b01.bin")
    assert sorted(merged) == sorted(
        [
            f"fuzz_call/{name}",
            f"fuzz_stack/{name}",
            f"fuzz_stack/{content_name(one / 'corpus/fuzz_stack/b.bin')}",
            f"fuzz_stack/{content_name(two / 'fuzz_stack/c.bin')}",
            f"crashes/{crash}",
            f"crashes/{crash}.json",
            f"crashes/{crash.replace('.bin', '.txt')}",
            "crashes/null-word/input.bin",
            "crashes/null-word/expected.json",
        ]
    )


def test_a_merged_corpus_can_be_merged_again(
    framestorm: Run, machines: tuple[Path, Path], tmp_path: Path
) -> None:
    framestorm("corpus", "merge", *machines, "--into", tmp_path / "x", "--no-prune")
    framestorm(
        "corpus", "merge", tmp_path / "x", machines[0], "--into", tmp_path / "y", "--no-prune"
    )
    assert tree(tmp_path / "x") == tree(tmp_path / "y")


def test_pruned_by_coverage_but_for_crashes_and_what_cannot_be_walked(
    framestorm: Run, fakes: FakePrograms, machines: tuple[Path, Path], tmp_path: Path
) -> None:
    one, _ = machines
    pcs = [fakes.symbols.ranges(name)[0][0] for name in PCS]
    # `b` adds nothing to `a`; `c` has no victim here.
    fakes.plan("coverage", {"pcs": pcs, "edges": {"a": [0, 1], "b": [1]}})
    into = tmp_path / "x"
    jdk = ("--jdk", fakes.tools.jdk.home)
    code, out, _ = framestorm("corpus", "merge", *machines, "--into", into, *jdk)
    assert code == 0
    assert "3 of 8 files reach together what all of them reach; 2 crash artifacts" in out
    assert not (into / "fuzz_stack" / content_name(one / "corpus/fuzz_stack/b.bin")).exists()
    assert len(list((into / "fuzz_stack").iterdir())) == 2
    assert (into / "crashes" / content_name(one / "artifacts" / "b01.bin")).exists()


def test_nothing_is_overwritten_and_nothing_is_said(
    framestorm: Run, machines: tuple[Path, Path], tmp_path: Path
) -> None:
    code, _, err = framestorm("corpus", "merge", machines[0], "--into", machines[1])
    assert (code, "is not empty" in err) == (2, True)
    (tmp_path / "empty").mkdir()
    code, _, err = framestorm("corpus", "merge", tmp_path / "empty", "--into", tmp_path / "x")
    assert (code, "holds no input" in err) == (2, True)
    assert not (tmp_path / "x").exists()


def test_whole_runs(tmp_path: Path) -> None:
    run = tmp_path / "run"
    put(run / "work" / "003-fuzz_call" / "corpus" / "1.bin", "a")
    put(run / "corpus" / "fuzz_call-set-aside-1" / "2.bin", "deadly")
    found = merging.gather([run])
    assert list(found.inputs) == ["fuzz_call"]
    assert len(found.artifacts) == 1


def test_two_crashes_of_one_name(machines: tuple[Path, Path], tmp_path: Path) -> None:
    other = put(tmp_path / "three" / "null-word" / "input.bin", "another")
    other.with_name("expected.json").write_text("{}")
    found = merging.gather([*machines, tmp_path / "three"])
    assert len(found.described) == 2


def test_import_of_stress(framestorm: Run, tmp_path: Path) -> None:
    run = tmp_path / "run"
    put(run / "cells" / "1" / "agent" / "seeds" / "s1.bin", "a")
    put(run / "cells" / "2" / "agent" / "seeds" / "s9.bin", "a")
    put(run / "cells" / "2" / "agent" / "samples" / "4.bin", "crash")
    code, out, _ = framestorm("corpus", "import", run, "--into", tmp_path / "x")
    assert code == 0
    assert "1 inputs and 1 artifacts of 3 files" in out
    assert [path.parent.name for path in sorted((tmp_path / "x").rglob("*.bin"))] in (
        ["x", "crashes"],
        ["crashes", "x"],
    )
    bucket = put(run / "buckets" / "b01" / "sample-1.bin", "crash")
    bucket.with_name("sample-1.bin.json").write_text('{"signature": 1}')
    code, out, _ = framestorm("corpus", "import", run, "--into", tmp_path / "z")
    assert "1 inputs and 1 artifacts of 4 files" in out
    (beside,) = (tmp_path / "z" / "crashes").glob("*.json")
    assert beside.read_text() == '{"signature": 1}'
    assert beside.with_suffix("").read_text() == TEXT.format("crash")
    code, _, err = framestorm(
        "corpus", "import", tmp_path / "x" / "crashes", "--into", tmp_path / "y"
    )
    assert (code, "is it the folder of" in err) == (2, True)


def stepped(folder: Path, *misses: tuple[str, int, str, str]) -> Path:
    """A run of `step`: method, offset, walker and verdict of each miss; all wrong in one section."""
    blobs: dict[str, dict[int, list[dict[str, str]]]] = {}
    for name, offset, walker, verdict in misses:
        text = f'framestorm-input 1\nscenario c1\nhalt nmethod "{name}" entry + {offset}\n'
        one = {
            "walker": walker,
            "verdict": verdict,
            "clause": "c",
            "detail": "",
            "detail_class": "",
        }
        there = blobs.setdefault(name, {}).setdefault(offset, [])
        there.append({**one, "input": f"{text}walker {walker}\n"})
    counts = ("steps", "walked", "judged", "passed", "excursions", "from_outside", "outside")
    made = {
        "seconds": 1.0,
        "walkers": ["asgct", "asgst"],
        "counts": dict.fromkeys(counts, 9) | {"lost": {}},
        "scenarios": {},
        "sections": {},
        "findings": [],
        "blobs": [
            {
                "kind": "nmethod",
                "name": name,
                "tier": 1,
                "code": "90",
                "instructions": [
                    {
                        "offset": offset,
                        "steps": 9,
                        "section": "C1 body",
                        "walkers": {},
                        "misses": there,
                    }
                    for offset, there in by_offset.items()
                ],
            }
            for name, by_offset in blobs.items()
        ],
    }
    folder.mkdir()
    (folder / "step.json").write_text(json.dumps(made))
    return folder


def test_import_of_step(framestorm: Run, tmp_path: Path) -> None:
    many = [("a/A.a", offset, "asgct", "wrong") for offset in range(8)]
    both = ("a/A.a", 3, "asgst", "refused")
    one = stepped(tmp_path / "one", *many, both, ("a/B.b", 0, "asgct", "short"))
    two = stepped(tmp_path / "two", *many, ("a/A.a", 9, "asgct", "wrong"))

    def imported(name: str, *more: str) -> list[str]:
        into = tmp_path / name
        code, out, _ = framestorm("corpus", "import", one, two, "--into", into, *more)
        assert code == 0
        texts = [file.read_text() for file in into.glob("*.txt")]
        assert f"{len(texts)} inputs and 0 artifacts" in out
        return sorted(" ".join(text.split()[4:]) for text in texts)

    whole = imported("all")
    assert len(whole) == 10, "each instruction once"
    # Of each way in turn: what one walker does often does not crowd out the others.
    few = imported("few", "--most", "3")
    assert few == [
        'halt nmethod "a/A.a" entry + 0 walker asgct',
        'halt nmethod "a/A.a" entry + 3 walker asgst',
        'halt nmethod "a/B.b" entry + 0 walker asgct',
    ]
    nothing = stepped(tmp_path / "nothing")
    code, out, _ = framestorm("corpus", "import", nothing, "--into", tmp_path / "none")
    assert (code, "0 inputs" in out) == (0, True), "all walkers were right"
