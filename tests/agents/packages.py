"""Installs the programs that tests drive, once each, and takes a process out of the network."""

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("AGENTS_CACHE") or HERE.parent.parent / "target/agents")
INSTALL_SECONDS = 600


class NotInstalled(Exception):
    pass


def installed(name, entry):
    """The folder that holds the package of this version; it is put there if need be."""
    folder = CACHE / f"{name}-{entry['version']}"
    done = folder / ".installed"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if "npm" in entry:
            package = f"{entry['npm']}@{entry['version']}"
            output([node_program("npm"), "install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", package])
        else:
            output([python_of(entry.get("python", "3.11")), "-m", "venv", folder])
            output([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", f"{entry['pypi']}=={entry['version']}"])
        done.touch()
    return folder


def output(argv):
    path = f"{os.environ.get('AGENTS_NODE', '')}:{os.environ['PATH']}"
    try:
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_SECONDS, env={**os.environ, "PATH": path}, check=False)
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise NotInstalled(str(failed)) from None
    if ran.returncode:
        said = (ran.stderr.strip() or ran.stdout.strip() or "no output").splitlines()
        raise NotInstalled(" ".join(line for line in said if "npm warn" not in line and "WARNING" not in line)[-300:])
    return ran.stdout


def node_program(name):
    return Path(os.environ["AGENTS_NODE"]) / name


def python_of(oldest):
    """A Python that is as new as this."""
    wanted = tuple(map(int, oldest.split(".")))
    names = [sys.executable, *(f"python3.{minor}" for minor in range(14, 10, -1))]
    pyenv = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.*/bin/python3"))
    for name in [*names, *map(str, pyenv)]:
        try:
            said = subprocess.run([name, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        if tuple(map(int, said.stdout.split())) >= wanted:
            return name
    raise NotInstalled(f"no Python {oldest} or newer is here")


def newest(entry):
    if "npm" in entry:
        return output([node_program("npm"), "view", "--loglevel=error", entry["npm"], "version"]).split()[-1]
    said = output([python_of(entry.get("python", "3.11")), "-m", "pip", "index", "versions", "--disable-pip-version-check", entry["pypi"]])
    return said.split("(")[1].split(")")[0]


# --- loopback and nothing else ---


def leave_network():
    """Moves this process into a network namespace with nothing but loopback."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_net, new_user = 0x40000000, 0x10000000
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(new_net if uid == 0 else new_net | new_user):
        return False
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        get_flags, set_flags, up = 0x8913, 0x8914, 1
        flags = struct.unpack("16sh", fcntl.ioctl(control, get_flags, struct.pack("16sh", b"lo", 0)))[1]
        fcntl.ioctl(control, set_flags, struct.pack("16sh", b"lo", flags | up))
    return True
