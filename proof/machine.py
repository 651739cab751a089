"""A whole virtual machine, so that its power can be cut: Debian's kernel under qemu, with this machine's own files.

The kernel's package is fetched and unpacked, not installed; an initramfs of busybox and a few modules is put together;
the root is this machine's, read-only, over 9p. Nothing is built into an image. Where the processor allows it the
machine runs on KVM, else in software.
"""

import asyncio
import gzip
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BUILD = Path("build/machine")
"""What is fetched and put together once."""

NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "modprobe": "kmod",
    "cpio": "cpio",
    "mkfs.ext4": "e2fsprogs",
    "apt-get": "apt",
}
"""Programs, and Debian's packages that bring them."""

MODULES = ("virtio_pci", "virtio_blk", "ext4", "9p", "9pnet_virtio", "overlay")
MEMORY_MB = 512
BOOT_WITHIN_S = 240.0


class MachineError(Exception):
    """The virtual machine cannot be made or does not start, and why."""


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel and its first files."""

    kernel: Path
    initramfs: Path


def build(folder: Path = BUILD) -> Built:
    """Fetch and put together what is not there yet. Raises MachineError."""
    paths = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    missing = [package for name, package in NEEDED.items() if shutil.which(name, path=paths) is None]
    if missing or platform.machine() != "x86_64":
        raise MachineError(f"power cuts need a 64-bit PC and these packages: {' '.join(missing)}")
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] = paths
    unpacked = folder / "kernel"
    if not unpacked.exists():
        _fetch(folder, unpacked)
    (image,) = (unpacked / "boot").glob("vmlinuz-*")
    initramfs = folder / "initramfs.gz"
    _pack(unpacked, image.name.removeprefix("vmlinuz-"), folder / "files", initramfs)
    return Built(image, initramfs)


def _fetch(folder: Path, unpacked: Path) -> None:
    depends = _run("apt-cache", "depends", "linux-image-amd64")
    version = next(line.split()[1] for line in depends.splitlines() if "Depends: linux-image" in line)
    subprocess.run(["apt-get", "-qq", "download", version], cwd=folder, check=True)
    (package,) = folder.glob("linux-image-*.deb")
    draft = folder / "kernel.new"
    _run("dpkg-deb", "-x", str(package), str(draft))
    tree = draft / "lib" if (draft / "lib" / "modules").exists() else draft / "usr" / "lib"
    (version_folder,) = (tree / "modules").iterdir()
    _run("depmod", "-b", str(tree.parent), version_folder.name)
    draft.rename(unpacked)


def _pack(unpacked: Path, version: str, files: Path, initramfs: Path) -> None:
    """The initramfs: busybox, our first program, and the modules in the order in which they are loaded."""
    shutil.rmtree(files, ignore_errors=True)
    for name in ("bin", "dev", "proc", "sys", "modules"):
        (files / name).mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), files / "bin" / "busybox")
    shutil.copy(Path(__file__).with_name("machine_init"), files / "init")
    (files / "init").chmod(0o755)
    base = unpacked if (unpacked / "lib" / "modules").exists() else unpacked / "usr"
    order: list[str] = []
    for module in MODULES:
        shown = _run("modprobe", "-d", str(base), "-S", version, "--show-depends", module)
        for words in map(str.split, shown.splitlines()):
            if words[:1] == ["insmod"] and Path(words[1]).name not in order:
                order.append(Path(words[1]).name)
                shutil.copy(words[1], files / "modules")
    (files / "modules" / "order").write_text("".join(f"{name}\n" for name in order), encoding="ascii")
    names = "\n".join(str(path.relative_to(files)) for path in sorted(files.rglob("*")))
    packed = subprocess.run(
        ["cpio", "-o", "-H", "newc", "--quiet"], cwd=files, input=names.encode(), stdout=subprocess.PIPE, check=True
    )
    initramfs.write_bytes(gzip.compress(packed.stdout, 1))


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def _accelerator() -> str:
    flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split()
    usable = os.access("/dev/kvm", os.W_OK) and ("vmx" in flags or "svm" in flags)
    return "kvm" if usable else "tcg"


class Machine:
    """One run of the machine, with the disk behind the socket ``disk`` and the folder ``shared``.

    The guest sees ``shared`` as /run/shared: it runs ``command`` from there, and what it writes there is with us at
    once. Its disk is /run/data.
    """

    def __init__(self, built: Built, disk: Path, shared: Path) -> None:
        self._built = built
        self._disk = disk
        self._shared = shared
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, command: Sequence[str]) -> None:
        """Switch it on."""
        lines = [f"cd {Path.cwd()}", "export HOME=/run LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1", " ".join(command)]
        (self._shared / "command").write_text("\n".join([*lines, ""]), encoding="utf-8")
        accelerator = _accelerator()
        self.process = await asyncio.create_subprocess_exec(
            "qemu-system-x86_64",
            *("-M", f"q35,accel={accelerator},usb=off,sata=off,smbus=off"),
            *("-cpu", "host" if accelerator == "kvm" else "max", "-m", str(MEMORY_MB), "-smp", "1"),
            *("-nodefaults", "-no-user-config", "-nographic", "-no-reboot"),
            *("-serial", f"file:{self._shared / 'console'}"),
            *("-kernel", str(self._built.kernel), "-initrd", str(self._built.initramfs)),
            *("-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check"),
            *("-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"),
            *("-device", "virtio-9p-pci,fsdev=root,mount_tag=root"),
            *("-fsdev", f"local,id=shared,path={self._shared},security_model=none"),
            *("-device", "virtio-9p-pci,fsdev=shared,mount_tag=shared"),
            *("-drive", f"file=nbd+unix:///?socket={self._disk},format=raw,if=virtio,cache=writeback"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )

    async def ended(self) -> None:
        """Wait until it switches itself off. Raises TimeoutError."""
        assert self.process is not None
        async with asyncio.timeout(BOOT_WITHIN_S):
            await self.process.wait()

    async def pull_the_plug(self) -> None:
        """Its power is gone, now."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
