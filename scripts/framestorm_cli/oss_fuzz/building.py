"""$OUT: fuzz targets with all they need, see fuzz/bundle/bundle.h.

fuzz_stack  fuzz_stack_seed_corpus.zip  fuzz_stack.dict  fuzz_stack.options    for each target
framestorm/jdk  framestorm/classes  framestorm/lib  framestorm/arguments       for all of them
"""

import shutil
from pathlib import Path

from framestorm_cli.base import packages, paths, steps
from framestorm_cli.binaries import elf
from framestorm_cli.native import processes, toolchain, walkers
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.oss_fuzz import inputs, jdk_image, programs
from framestorm_cli.oss_fuzz.settings import Settings

_SHARED = "framestorm"


def build(settings: Settings) -> None:
    """Everything, into settings.out; what else is there stays. Raises FramestormError."""
    packages.ensure()
    jdk = jdk_image.choose(settings)
    steps.say(f"JDK under test: {jdk}")
    targets = programs.build(settings, jdk)
    image = jdk_image.trimmed(jdk)
    classes = toolchain.victims(jdk)
    toolchain.build((NATIVE,), jdk)
    encoder = paths.build() / "bin" / NATIVE

    out = settings.out
    shared = out / _SHARED
    shutil.rmtree(shared, ignore_errors=True)
    (shared / "lib").mkdir(parents=True)
    shutil.copytree(image, shared / "jdk")
    shutil.copytree(classes, shared / "classes")
    chosen = walkers.table(encoder).added() if settings.walkers is None else settings.walkers
    (shared / "arguments").write_text(
        "".join(f"--walker\n{name}\n" for name in chosen), encoding="utf-8"
    )
    _copy_libraries(settings, targets / paths.TARGETS[0], shared)

    def encode(text: bytes) -> bytes:
        return processes.filter_text(encoder, "encode", text)

    texts = {target: inputs.texts_of(target) for target in paths.TARGETS}
    tokens = inputs.tokens_of(
        {f"{target}/{name}": text for target in texts for name, text in texts[target].items()},
        encode,
    )
    for target in paths.TARGETS:
        shutil.copy2(targets / target, out / target)
        inputs.write_seed_corpus(texts[target], out / f"{target}_seed_corpus.zip", encode)
        inputs.write_dictionary(tokens, out / f"{target}.dict")
        (out / f"{target}.options").write_text(inputs.OPTIONS, encoding="utf-8")
    _let_all_read(out)
    steps.say(f"{len(paths.TARGETS)} targets for {settings.engine}, {settings.sanitizer} in {out}")


def _copy_libraries(settings: Settings, program: Path, shared: Path) -> None:
    runtime = programs.asan_runtime(settings, program)
    if runtime is not None:
        # Where ldd looks for it, so that it finds what the runtime needs itself.
        name = next(one for one in elf.needed(program) if programs.RUNTIME in one)
        (program.parent / _SHARED / "lib").mkdir(parents=True, exist_ok=True)
        shutil.copy2(runtime, program.parent / _SHARED / "lib" / name)
        jdk_image.use_runtime(shared / "jdk" / "lib" / "server" / "libjvm.so", name)
    for name, path in programs.libraries(program).items():
        shutil.copy2(path, shared / "lib" / name)


def _let_all_read(out: Path) -> None:
    """Whoever runs the targets is somebody else."""
    for path in (out, *out.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode & 0o777
            path.chmod(mode | 0o444 | (0o111 if path.is_dir() or mode & 0o100 else 0))
