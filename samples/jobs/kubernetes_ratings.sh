#!/bin/bash
# Runs the stages of a plan of ratings as Jobs, each that of kubernetes.yaml with another command, then finishes the pack:
#   bash kubernetes_ratings.sh FOLDER TASKS
# FOLDER is the plan's path in the pods. Image, volume and sizes are those of kubernetes.yaml.
set -euo pipefail
folder=${1:?FOLDER} tasks=${2:?TASKS, the number that --plan printed}
job() {  # NAME PODS ARGUMENTS
  sed -e "s/pack-train/ratings-$1/; s/completions: [0-9]*/completions: $2/; s/maxFailedIndexes: [0-9]*/maxFailedIndexes: $2/" \
    -e "s|pack-run /data/train --task \$JOB_COMPLETION_INDEX|pack-run $folder $3|" "$(dirname "$0")/kubernetes.yaml" |
    kubectl apply -f -
  until kubectl get "job/ratings-$1" -o jsonpath='{.status.conditions[*].type}' | grep -Eq 'Complete|Failed'; do sleep 5; done
}
# Where pods of a stage failed, the next stage does what is missing, or its pods say what is wrong.
job count "$tasks" '--stage count --task $JOB_COMPLETION_INDEX'
job columns 1 '--stage columns'
job pack "$tasks" '--stage pack --task $JOB_COMPLETION_INDEX'
job finish 1 ''
kubectl get job/ratings-finish -o jsonpath='{.status.conditions[*].type}' | grep -q Complete
