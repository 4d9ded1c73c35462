"""Doubled tasks on a real shared file system (MooseFS) with two clients, where no lock reaches the other client: every
task succeeds or may be run again, and the bytes are those of one run."""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SMALL, Workspace, check, draw_seed, files_of, make_images, run

ADDRESS = "10.99.99.1"  # MooseFS takes no address of 127.0.0.0/8
ROUNDS = 20


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


class SharedFolders:
    """One MooseFS on this host, mounted twice; gone at the end."""

    def __init__(self, at):
        self.at, self.mounts, self.daemons = at, [f"{at}/a", f"{at}/b"], []

    def daemon(self, *command):
        self.daemons.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def __enter__(self):
        at = self.at
        for folder in ("master", "chunks", "server", "a", "b"):
            os.makedirs(f"{at}/{folder}")
        subprocess.run(["ip", "addr", "add", f"{ADDRESS}/32", "dev", "lo"], stderr=subprocess.DEVNULL)
        shutil.copy(next(path for path in ("/var/lib/mfs/metadata.mfs.empty", "/usr/share/doc/moosefs-master/metadata.mfs.empty")
                         if os.path.exists(path)), f"{at}/master/metadata.mfs")
        files = {
            "exports.cfg": "* / rw,alldirs,admin,maproot=0:0\n", "hdd.cfg": f"{at}/chunks\n",
            "master.cfg": f"WORKING_USER=root\nWORKING_GROUP=root\nDATA_PATH={at}/master\nEXPORTS_FILENAME={at}/exports.cfg\n"
                          f"MATOML_LISTEN_HOST={ADDRESS}\nMATOCS_LISTEN_HOST={ADDRESS}\nMATOCL_LISTEN_HOST={ADDRESS}\n",
            "server.cfg": f"WORKING_USER=root\nWORKING_GROUP=root\nDATA_PATH={at}/server\nHDD_CONF_FILENAME={at}/hdd.cfg\n"
                          f"MASTER_HOST={ADDRESS}\nCSSERV_LISTEN_HOST={ADDRESS}\nBIND_HOST={ADDRESS}\n",
        }
        for name, text in files.items():
            with open(f"{at}/{name}", "w") as file:
                file.write(text)
        self.daemon("mfsmaster", "-c", f"{at}/master.cfg", "-f", "start")
        self.daemon("mfschunkserver", "-c", f"{at}/server.cfg", "-f", "start")
        begun = time.monotonic()
        for mount in self.mounts:
            while subprocess.run(["mfsmount", "-H", ADDRESS, mount], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
                if time.monotonic() - begun > 20:
                    skip("MooseFS does not mount here")
                time.sleep(0.2)
        while True:
            try:
                with open(f"{self.mounts[0]}/ready", "w") as file:
                    file.write("ready")
                if all(os.statvfs(mount).f_bavail > 0 for mount in self.mounts):
                    return self
                time.sleep(0.2)
            except OSError:
                if time.monotonic() - begun > 30:
                    skip("MooseFS has no chunk server here")
                time.sleep(0.2)

    def __exit__(self, *_):
        for mount in self.mounts:
            subprocess.run(["umount", "-l", mount], stderr=subprocess.DEVNULL)
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
        subprocess.run(["ip", "addr", "del", f"{ADDRESS}/32", "dev", "lo"], stderr=subprocess.DEVNULL)


def start(mount, *arguments):
    return subprocess.Popen([f"{BIN}/pack-run", f"{mount}/pack", "--progress", "none", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


def test_doubled_tasks_with_kills(space, shared):
    draw = random.Random(draw_seed())
    root = space("images")
    make_images(root, 150)
    flags = (root, "--labels", f"{root}/labels.csv", *SMALL, "--progress", "none", "--output")
    run("pack-images", *flags, space("plain"))
    golden = files_of(space("plain"))
    first, second = shared.mounts
    codes = {}
    for _ in range(ROUNDS):
        run("pack-images", *flags, f"{first}/pack", "--plan", "2")
        tasks = [start(mount, "--task", task) for task in "01" for mount in (first, second)]
        victim = draw.choice([None, *tasks])
        if victim:
            time.sleep(draw.random() * 0.15)
            victim.send_signal(signal.SIGKILL)
        for one in tasks:
            text = one.communicate(timeout=60)[0].decode()
            codes[one.returncode] = codes.get(one.returncode, 0) + 1
            check(one.returncode in (0, 75) or one is victim, one.returncode, text)
        last = start(second)
        check(last.wait(60) == 0, last.stdout.read().decode())
        for mount in shared.mounts:
            found = files_of(f"{mount}/pack")
            check(found == golden, mount, "differs:", [name for name in found.keys() | golden.keys() if found.get(name) != golden.get(name)])
        shutil.rmtree(f"{first}/pack")
    print("exit codes of the tasks:", codes)


for command in ("mfsmaster", "mfschunkserver", "mfsmount", "ip"):
    if shutil.which(command) is None:
        skip(command + " is not installed")
if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
    skip("needs root and /dev/fuse")
with Workspace() as workspace, SharedFolders(workspace("mfs")) as folders:
    begun_at = time.monotonic()
    test_doubled_tasks_with_kills(workspace, folders)
    print(f"passed in {time.monotonic() - begun_at:.1f} s")
