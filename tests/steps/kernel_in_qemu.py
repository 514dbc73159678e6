"""Run tests under a kernel of Debian in QEMU, on a machine whose own kernel has no RDMA.

    python tests/steps/kernel_in_qemu.py FOLDER [--siw] [--kernel PACKAGE] [--deb FILE] [PYTEST ARGUMENTS]

The guest sees the file system of this machine read-only, with Debian's RDMA packages laid over it; what it writes is in
its memory. So the guest runs this Python and this source tree. It has no network card. The packages come from
``apt-get download`` and stay in FOLDER; nothing is installed. The script ends with the exit status of pytest.

Needs: Debian 12 or later, ``qemu-system-x86`` and ``iproute2``, and about 1 GiB in FOLDER. Without KVM the guest is
emulated, which is slow.
Leaves out: other processors than x86-64.
"""

from __future__ import annotations

import argparse
import lzma
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

REPOSITORY: Final = Path(__file__).resolve().parents[2]
# Programs and libraries of the guest, beyond those of this machine.
PACKAGES: Final = (
    *("busybox-static", "kmod", "libkmod2"),
    *("rdma-core", "libibverbs1", "librdmacm1", "ibverbs-providers", "libnl-3-200", "libnl-route-3-200", "libibumad3"),
    *("rdmacm-utils", "ibverbs-utils", "python3-pyverbs"),
)
EARLY_MODULES: Final = ("virtio_pci", "9pnet_virtio", "9p", "overlay")  # before the guest sees a file of this machine
MODULES: Final = ("veth", "sch_netem", "ib_uverbs", "rdma_ucm", "rdma_rxe")
HOST_PACKAGES: Final = "qemu-system-x86 and iproute2, for --siw also gcc and make"
KERNEL: Final = "linux-image-amd64"
TESTS: Final = "tests/others/test_rdma_kernel.py"
MERGED: Final = ("bin", "sbin", "lib", "lib64")  # links into usr, as in a Debian since version 12

INIT: Final = """#!/bin/busybox sh
set -e
bb=/bin/busybox
$bb mount -t proc proc /proc
$bb mount -t devtmpfs dev /dev
while read -r module; do $bb insmod "/modules/$module"; done < /modules/order
options=trans=virtio,version=9p2000.L,msize=524288
$bb mount -t 9p -o ro,cache=loose,$options machine /machine
$bb mount -t 9p -o ro,cache=loose,$options packages /packages
$bb mount -t 9p -o $options results /results
$bb mount -t tmpfs rw /rw
$bb mkdir /rw/changed /rw/work
$bb mount -t overlay -o lowerdir=/packages:/machine,upperdir=/rw/changed,workdir=/rw/work root /root
for folder in proc sys run dev; do $bb mkdir -p /root/$folder; done
$bb umount /proc
$bb mount -t proc proc /root/proc
$bb mount -t sysfs sys /root/sys
$bb mount -t tmpfs run /root/run
$bb mount --move /dev /root/dev
$bb mkdir -p /root/run/results /root/dev/shm
$bb mount -t tmpfs shm /root/dev/shm
$bb mount --move /results /root/run/results
exec $bb switch_root /root /bin/sh /run/results/guest.sh
"""

GUEST: Final = """\
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp {environment}
ip link set lo up
for module in {modules}; do modprobe "$module"; done
uname -srv > /run/results/kernel
cd {repository}
{command}
echo "$?" > /run/results/status
sync
echo o > /proc/sysrq-trigger
while :; do :; done
"""


def main() -> int:
    """Run the script and return the exit status of pytest in the guest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the packages stay; made if it is not there")
    parser.add_argument("--kernel", default=KERNEL, help=f"package of the kernel (default: {KERNEL})")
    parser.add_argument("--deb", type=Path, help="file of a kernel package, instead of --kernel")
    parser.add_argument("--memory", default="1G", help="memory of the guest (default: 1G)")
    parser.add_argument("--timeout-s", type=float, default=3600.0, help="end the guest after so long (default: 3600)")
    parser.add_argument("--siw", action="store_true", help="build siw (iWARP) from Debian's source of the kernel too")
    given, pytest_words = parser.parse_known_args()
    require("qemu-system-x86_64", "apt-get", "apt-cache", "dpkg-deb", "ip", "rdma")
    folder: Path = given.folder.resolve()
    root = folder / "root"
    kernel_deb = given.deb or download_kernel(folder, given.kernel)
    version = kernel_version(kernel_deb)
    unpack((*download(folder, PACKAGES), kernel_deb), root)
    if given.siw:
        build_siw(folder, root, version)
    subprocess.run([root / "usr/sbin/depmod", "-b", root, version], check=True, env=with_libraries(root))
    initramfs = folder / f"initramfs-{version}"
    initramfs.write_bytes(pack_initramfs(root, version))
    with tempfile.TemporaryDirectory(prefix="weftwork-guest-") as results:
        command = ["-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *(pytest_words or [TESTS, "-v"])]
        guest = GUEST.format(
            environment=f"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={shlex.quote(str(REPOSITORY / 'src'))}",
            modules=" ".join((*MODULES, "siw") if given.siw else MODULES),
            repository=shlex.quote(str(REPOSITORY)),
            command=shlex.join([sys.executable, *command]),
        )
        (Path(results) / "guest.sh").write_text(guest)
        began_s = time.monotonic()
        boot(root, version, initramfs, Path(results), given.memory, given.timeout_s)
        kernel = read(Path(results) / "kernel") or f"no kernel: {version} did not come up"
        status = read(Path(results) / "status")
    ending = f"pytest ended with {status}" if status else "the guest ended before pytest did"
    print(f"{kernel}; {time.monotonic() - began_s:.0f} s; {ending}")
    return int(status) if status else 3


def require(*programs: str) -> None:
    """End the script if a program is missing."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        names = ", ".join(missing)
        sys.exit(f"kernel_in_qemu: found no {names}; install the Debian packages {HOST_PACKAGES}")


def download(folder: Path, packages: Iterable[str]) -> list[Path]:
    """Files of packages, fetched if they are not in the folder."""
    into = folder / "packages"
    into.mkdir(parents=True, exist_ok=True)
    missing = [package for package in packages if not list(into.glob(f"{package}_*.deb"))]
    if missing:
        command = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *missing]
        if subprocess.run(command, check=False, cwd=into).returncode:
            names = ", ".join(missing)
            sys.exit(
                f"kernel_in_qemu: apt-get does not find {names}; update its lists, or add the suite to its sources"
            )
    return [max(into.glob(f"{package}_*.deb"), key=lambda file: file.stat().st_mtime) for package in packages]


def download_kernel(folder: Path, package: str) -> Path:
    """File of a kernel; a package without files names the package that has them."""
    told = subprocess.run(["apt-cache", "depends", package], check=True, capture_output=True, text=True).stdout
    images = re.findall(r"Depends: (linux-image-\d\S+)", told)
    return download(folder, images[:1] or [package])[0]


def kernel_version(deb: Path) -> str:
    """Version of the kernel in a package, such as 6.1.0-44-amd64."""
    name = subprocess.run(["dpkg-deb", "-f", deb, "Package"], check=True, capture_output=True, text=True).stdout.strip()
    return name.removeprefix("linux-image-").removesuffix("-unsigned")


def unpack(debs: Iterable[Path], root: Path) -> None:
    """Unpack packages over each other, those that are not there yet."""
    (root / "usr").mkdir(parents=True, exist_ok=True)
    for name in MERGED:
        (root / "usr" / name).mkdir(exist_ok=True)
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    done = root / ".unpacked"
    done.mkdir(exist_ok=True)
    for deb in debs:
        if not (done / deb.name).exists():
            files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
            into = ("tar", "-x", "--keep-directory-symlink", "-C", root)  # `dpkg-deb -x` replaces the links into usr
            subprocess.run(into, check=True, stdin=files.stdout)
            if files.wait():
                sys.exit(f"kernel_in_qemu: dpkg-deb cannot read {deb}; delete the file and run the script again")
            (done / deb.name).touch()


def build_siw(folder: Path, root: Path, version: str) -> None:
    """Build the module that Debian leaves out of its kernels, from its packages."""
    into = root / "usr/lib/modules" / version / "extra/siw.ko"
    if into.exists():
        return
    require("gcc", "make", "strip")
    (headers,) = download(folder, [f"linux-headers-{version}"])
    needs = subprocess.run(["dpkg-deb", "-f", headers, "Depends"], check=True, capture_output=True, text=True).stdout
    parts = download(folder, re.findall(r"linux-(?:headers|kbuild)-[^\s,(]+", needs))
    series = ".".join(version.split(".")[:2])
    (source,) = download(folder, [f"linux-source-{series}"])
    build = folder / f"build-{version}"
    unpack((headers, *parts), build)
    make_in = build / "usr/src" / f"linux-headers-{version}"
    makefile = make_in / "Makefile"
    makefile.write_text(makefile.read_text().replace("include /usr/src/", f"include {make_in.parent}/"))
    with tempfile.NamedTemporaryFile(suffix=".tar.xz") as archive:
        inside = f"./usr/src/linux-source-{series}.tar.xz"
        files = subprocess.run(["dpkg-deb", "--fsys-tarfile", source], check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-xO", inside], check=True, input=files, stdout=archive)
        wanted = f"linux-source-{series}/drivers/infiniband/sw/siw"
        subprocess.run(["tar", "-xJf", archive.name, "-C", build, wanted], check=True)
    siw = build / wanted
    subprocess.run(["make", "-C", make_in, f"M={siw}", "CONFIG_RDMA_SIW=m", "modules"], check=True)
    subprocess.run(["strip", "-g", siw / "siw.ko"], check=True)
    into.parent.mkdir(exist_ok=True)
    shutil.copy(siw / "siw.ko", into)


def with_libraries(root: Path) -> dict[str, str]:
    return os.environ | {"LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu")}


def pack_initramfs(root: Path, version: str) -> bytes:
    """What the kernel needs until it sees the files of this machine: busybox and a few modules."""
    modules = root / "usr/lib/modules" / version
    order = in_order(modules)
    folders = ("bin", "dev", "proc", "machine", "packages", "results", "rw", "root", "modules")
    files = {"init": INIT.encode(), "bin/busybox": (root / "usr/bin/busybox").read_bytes()}
    files["modules/order"] = "".join(f"{number}.ko\n" for number in range(len(order))).encode()
    for number, module in enumerate(order):
        content = (modules / module).read_bytes()
        files[f"modules/{number}.ko"] = lzma.decompress(content) if module.endswith(".xz") else content
    archive = b"".join(cpio_entry(name, 0o040755, b"") for name in folders)
    archive += b"".join(cpio_entry(name, 0o100755, content) for name, content in files.items())
    return archive + cpio_entry("TRAILER!!!", 0, b"")


def in_order(modules: Path) -> list[str]:
    """Files of the early modules, each behind those that it needs."""
    needs = dict(line.split(":", 1) for line in (modules / "modules.dep").read_text().splitlines())
    by_name = {Path(file).name.partition(".")[0].replace("-", "_"): file for file in needs}
    order: dict[str, None] = {}
    for name in EARLY_MODULES:
        if name in by_name:  # otherwise the kernel has it built in
            order.update(dict.fromkeys([*reversed(needs[by_name[name]].split()), by_name[name]]))
    return list(order)


def cpio_entry(name: str, mode: int, content: bytes) -> bytes:
    """A file in the format newc of Linux' Documentation/driver-api/early-userspace/buffer-format.rst."""
    raw = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
    return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)


def boot(root: Path, version: str, initramfs: Path, results: Path, memory: str, timeout_s: float) -> None:
    """Run the guest until it switches itself off."""

    def share(path: Path, tag: str, *more: str) -> tuple[str, str]:
        options = (f"local,path={path}", f"mount_tag={tag}", "security_model=none", "multidevs=remap", *more)
        return "-virtfs", ",".join(options)

    command = (
        *("qemu-system-x86_64", "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-nic", "none"),
        *("-accel", accelerator(), "-cpu", "max"),
        *("-smp", "1", "-m", memory, "-kernel", root / "boot" / f"vmlinuz-{version}", "-initrd", initramfs),
        *("-append", "console=ttyS0 quiet panic=-1 mitigations=off"),
        *share(Path("/"), "machine", "readonly=on"),
        *share(root, "packages", "readonly=on"),
        *share(results, "results"),
    )
    guest = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        guest.wait(timeout_s)
    except subprocess.TimeoutExpired:
        print(f"kernel_in_qemu: the guest is ended after {timeout_s:g} s")
    finally:
        guest.kill()
        guest.wait()


def accelerator() -> str:
    """KVM where the processor has it: some virtual machines have /dev/kvm without, and guests hang there."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return "kvm" if flags & {"vmx", "svm"} and os.access("/dev/kvm", os.R_OK | os.W_OK) else "tcg"


def read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
