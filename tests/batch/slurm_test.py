"""A plan on a real Slurm of three nodes on this host: an array, preemption, a lost node whose program lives on, and a
last job that finishes. The pack is byte for byte what one run writes."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, Workspace, check, files_of, make_images, run

SLURM_SH = os.path.join(os.path.dirname(__file__), "../../samples/jobs/slurm.sh")
NODES = 3
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool/%n
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd-%n.pid
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/slurmd-%n.log
PlugStackConfig=/dev/null
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MinJobAge=600
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
"""


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def slurm(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, command, done.stdout.decode())
    return done.stdout.decode().strip()


def state_of(job):
    return slurm("scontrol", "--oneliner", "show", "job", job)


def await_that(what, truth, seconds=60):
    begun = time.monotonic()
    while not truth():
        check(time.monotonic() - begun < seconds, what, "after", seconds, "s;", slurm("squeue"), slurm("sinfo", "-N"))
        time.sleep(0.1)


class Cluster:
    """Slurm's daemons, of this user's own configuration; gone at the end."""

    def __init__(self, at):
        self.at, self.host = at, socket.gethostname().split(".")[0]
        for folder in ("state", "spool", "log"):
            os.makedirs(f"{at}/{folder}")
        ports = free_ports(1 + NODES)
        text = CONFIG.format(at=at, host=self.host, port=ports[0])
        for node in range(NODES):
            text += f"NodeName=n{node} NodeHostname={self.host} NodeAddr=127.0.0.1 Port={ports[1 + node]} CPUs=2 RealMemory=9000\n"
        text += "PartitionName=low Nodes=ALL Default=YES PriorityTier=1 State=UP\n"
        text += "PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP\n"
        with open(f"{at}/slurm.conf", "w") as file:
            file.write(text)
        os.environ["SLURM_CONF"] = f"{at}/slurm.conf"

    def __enter__(self):
        slurm("slurmctld")
        for node in range(NODES):
            slurm("slurmd", "-N", f"n{node}")
        await_that("nodes idle", lambda: set(slurm("sinfo", "-N", "-h", "-o", "%N %T").split("\n")) == {f"n{node} idle" for node in range(NODES)}, 20)
        return self

    def pid(self, name):
        with open(f"{self.at}/{name}.pid") as file:
            return int(file.read())

    def __exit__(self, *_):
        subprocess.run(["scancel", "-u", "root"], stderr=subprocess.DEVNULL)
        for name in [*(f"slurmd-n{node}" for node in range(NODES)), "slurmctld"]:
            try:
                os.kill(self.pid(name), signal.SIGKILL)
            except (OSError, ValueError):
                pass
        subprocess.run(["pkill", "-9", "-f", self.at], stderr=subprocess.DEVNULL)


def submit(*arguments):
    return slurm("sbatch", "--parsable", "--output", f"{os.environ['SLURM_CONF']}-%A-%a.log", *arguments)


def begin(space, name, count, tasks, *flags):
    root, out = space(name), space(name + "-pack")
    make_images(root, count)
    flags = ("--labels", f"{root}/labels.csv", "--resize", "320x240", "--chunk-samples", "4", "--part-bytes", "4M", *flags)
    run("pack-images", root, *flags, "--progress", "none", "--output", out + "-plain")
    run("pack-images", root, *flags, "--progress", "none", "--output", out, "--plan", tasks)
    return out, files_of(out + "-plain")


def has_job(job):
    return f" {job}" in " " + slurm("squeue", "-h", "-o", "%A").replace("\n", " ")


def finish(out, golden, dependency):
    last = submit("--dependency", f"afterany:{dependency}", "--cpus-per-task=1", "--wrap", f"pack-run {out} --threads 1 --progress none")
    await_that("the last job ended", lambda: any(f"JobState={end}" in state_of(last) for end in ("COMPLETED", "FAILED")), 60)
    with open(f"{os.environ['SLURM_CONF']}-{last}-4294967294.log") as log:
        check("JobState=COMPLETED" in state_of(last), log.read())
    found = files_of(out)
    check(found == golden, "differ:", [name for name in found.keys() | golden.keys() if found.get(name) != golden.get(name)])


ARRAY = ["--cpus-per-task=1", "--mem=4G", "--export=ALL"]


def test_an_array_then_a_last_job(space, _):
    out, golden = begin(space, "array", 150, 6)
    tasks = submit("--array=0-5", *ARRAY, SLURM_SH, out)
    finish(out, golden, tasks)
    check(not os.path.exists(f"{out}/plan.json"), "the plan stays")


def test_preempted_tasks_are_requeued(space, _):
    out, golden = begin(space, "preempted", 600, 6)
    tasks = submit("--array=0-5", *ARRAY, SLURM_SH, out)
    await_that("running", lambda: slurm("squeue", "-h", "-t", "R", "-o", "%A") != "", 20)
    pressing = [submit("-p", "high", "--cpus-per-task=2", "--wrap", "sleep 1") for _ in range(NODES)]
    finish(out, golden, tasks)
    check(all("COMPLETED" in state_of(job) for job in pressing), "the other jobs ran")


def test_a_lost_node_whose_program_lives_on(space, cluster):
    out, golden = begin(space, "lost", 1500, 2)
    slurm("scontrol", "update", "node=n1,n2", "state=drain", "reason=test")
    tasks = submit("--array=0-1", *ARRAY, SLURM_SH, out)
    running = lambda: subprocess.run(["pgrep", "-f", f"pack-run {out} --task"], stdout=subprocess.PIPE).stdout.split()
    await_that("running", lambda: len(running()) >= 2, 20)
    alive = running()
    os.kill(cluster.pid("slurmd-n0"), signal.SIGKILL)
    slurm("scontrol", "update", "node=n1,n2", "state=resume")
    slurm("scontrol", "update", "node=n0", "state=down", "reason=test")
    check(set(alive) & set(running()), "the lost node's programs ended before the test could double them")
    await_that("twice at once", lambda: len(set(running())) > len(alive) or not has_job(tasks), 30)
    finish(out, golden, tasks)


for command in ("slurmctld", "slurmd", "sbatch", "pgrep"):
    if shutil.which(command) is None:
        skip(command + " is not installed")
if os.geteuid() != 0:
    skip("needs root")
os.environ["PATH"] = BIN + ":" + os.environ["PATH"]
with Workspace() as workspace, Cluster(workspace("slurm")) as slurm_cluster:
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            begun_at = time.monotonic()
            test(workspace, slurm_cluster)
            print(name, f"passed in {time.monotonic() - begun_at:.1f} s", flush=True)
