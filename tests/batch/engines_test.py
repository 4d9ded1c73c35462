"""The scripts of samples/jobs run as they are written: GNU parallel, Dask, and the command of the Kubernetes Job.
The third argument names the engine; exit code 77 says that it is not installed."""
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, Workspace, check, files_of, make_images, run

JOBS = os.path.join(os.path.dirname(__file__), "../../samples/jobs")


def begin(space, name, tasks, count=300):
    root, out = space(name), space(name + "-pack")
    make_images(root, count)
    flags = ("--labels", f"{root}/labels.csv", "--resize", "160x120", "--chunk-samples", "4", "--part-bytes", "1M", "--progress", "none")
    run("pack-images", root, *flags, "--output", out + "-plain")
    run("pack-images", root, *flags, "--output", out, "--plan", tasks)
    return out, files_of(out + "-plain")


def engine(*command, timeout=120):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    check(done.returncode == 0, command, done.stdout.decode(errors="replace"))
    return done.stdout.decode(errors="replace")


def run_parallel(space):
    if shutil.which("parallel") is None:
        return "GNU parallel is not installed"
    out, golden = begin(space, "parallel", 4)
    engine("bash", f"{JOBS}/parallel.sh", out, "4", "-j", "2")
    check(files_of(out) == golden, "differs")


def run_dask(space):
    if subprocess.run(["/usr/bin/python3", "-c", "import distributed"], stderr=subprocess.DEVNULL).returncode != 0:
        return "python3-distributed is not installed"
    out, golden = begin(space, "dask", 4)
    engine("/usr/bin/python3", f"{JOBS}/dask_run.py", out, "4")
    check(files_of(out) == golden, "differs")


def run_dask_worker_killed_while_its_task_runs(space):
    """Without setpriv, as a user's own script may be: the killed worker's command lives on beside its repetition."""
    if subprocess.run(["/usr/bin/python3", "-c", "import distributed"], stderr=subprocess.DEVNULL).returncode != 0:
        return "python3-distributed is not installed"
    out, golden = begin(space, "killed", 2, count=3000)
    script = space("dask_run.py")
    with open(f"{JOBS}/dask_run.py") as file:
        text = file.read()
    changed = text.replace('"setpriv", "--pdeathsig", "TERM", ', "").replace("Client(scheduler)", "Client(n_workers=2, threads_per_worker=1)")
    check(changed.count("setpriv") == text.count("setpriv") - 1, "the sample has another command")
    with open(script, "w") as file:
        file.write(changed)
    dask = subprocess.Popen(["/usr/bin/python3", script, out, "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    begun = time.monotonic()
    find = lambda: subprocess.run(["pgrep", "-f", f"^pack-run {out} --task"], stdout=subprocess.PIPE).stdout.split()
    while not find():
        check(time.monotonic() - begun < 60 and dask.poll() is None, "no task began")
        time.sleep(0.05)
    child = int(find()[0])
    with open(f"/proc/{child}/stat") as file:
        worker = int(file.read().rsplit(")", 1)[1].split()[1])
    os.kill(worker, signal.SIGKILL)
    text = dask.communicate(timeout=120)[0].decode(errors="replace")
    check(dask.returncode == 0, text)
    check(files_of(out) == golden, "differs")


def run_the_command_of_the_kubernetes_job(space):
    try:
        import yaml
    except ImportError:
        return "python3-yaml is not installed"
    with open(f"{JOBS}/kubernetes.yaml") as file:
        job, training = yaml.safe_load_all(file)
    spec = job["spec"]
    pod = spec["template"]["spec"]
    check((job["apiVersion"], job["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed"), job)
    check(pod["restartPolicy"] == "Never", "podFailurePolicy needs it")
    codes = {rule["action"]: rule["onExitCodes"]["values"] for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule}
    check(codes == {"FailJob": [1, 2], "FailIndex": [65, 73]}, codes)
    out, golden = begin(space, "pod", 2)
    (container,) = pod["containers"]
    for index in range(2):
        command = [word.replace("/data/train", out) for word in container["command"]]
        done = subprocess.run(command, env={**os.environ, "JOB_COMPLETION_INDEX": str(index)}, stdout=subprocess.DEVNULL)
        check(done.returncode == 0, command)
    (container,) = training["spec"]["template"]["spec"]["containers"]
    with open(space("train.py"), "w") as file:
        file.write("print('trained')")
    command = [word.replace("/data/train.py", space("train.py")).replace("/data/train", out) for word in container["command"]]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    check(done.returncode == 0 and done.stdout.endswith("trained\n"), command, done.stdout)
    check(files_of(out) == golden, "differs")


os.environ["PATH"] = BIN + ":" + os.environ["PATH"]
ENGINES = {"parallel": run_parallel, "dask": run_dask, "dask_killed": run_dask_worker_killed_while_its_task_runs,
           "kubernetes": run_the_command_of_the_kubernetes_job}
with Workspace() as workspace:
    reason = ENGINES[sys.argv[3]](workspace)
    print(sys.argv[3], "skipped: " + reason if reason else "passed", flush=True)
    sys.exit(77 if reason else 0)
