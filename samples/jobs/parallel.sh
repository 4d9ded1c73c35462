#!/bin/bash
# Runs the tasks of a plan by GNU parallel, here or on hosts that share FOLDER and the inputs, then finishes the pack:
#   bash parallel.sh FOLDER TASKS [-j 4] [-S host1,host2]
# One task at a time on each host, as a task uses all CPUs. FOLDER.log lists the tasks.
set -euo pipefail
trap 'exit 130' INT TERM
folder=${1:?FOLDER} tasks=${2:?TASKS, the number that --plan printed}
folder=${folder%/}
shift 2
parallel -q -j 1 "$@" --retries 3 --joblog "$folder.log" pack-run "$folder" --progress none --task {} ::: $(seq 0 $((tasks - 1))) ||
  echo "some tasks failed; pack-run does what is missing" >&2
pack-run "$folder"
