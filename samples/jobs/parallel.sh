#!/bin/bash
# Runs the tasks of a plan by GNU parallel, here or on hosts that share FOLDER and the images, then finishes the pack:
#   bash parallel.sh FOLDER TASKS [-S host1,host2] [-j 4]
# The log lists the tasks; parallel's --resume-failed runs those again that failed.
set -euo pipefail
folder=$1 tasks=$2
shift 2
parallel "$@" --retries 3 --joblog "$folder.log" pack-run "$folder" --task {} --progress none ::: $(seq 0 $((tasks - 1))) ||
  echo "some tasks failed; pack-run packs what is missing" >&2
pack-run "$folder"
