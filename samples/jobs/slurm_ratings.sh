#!/bin/bash
# Packs ratings as a Slurm array, each part alone. PARTS has part-0.csv to part-199.csv, on storage that all nodes share; every
# user is whole in one of them. The first command prints the --values of the second:
#   pack-sparse PARTS/part-*.csv --count-items -o items.csv
#   parts=$(sbatch --parsable --array=0-199%50 slurm_ratings.sh PARTS PACKS --reuse-ids items.csv --values u8:0.5)
#   sbatch --dependency=afterok:$parts --wrap 'pack-merge all PACKS/*'
# Rules and split stand in both commands, but --min-item in the first one alone. With a split: pack-merge all/train PACKS/*/train.
# What a task takes. sbatch --cpus-per-task=16 --mem=8G changes it, too.
#SBATCH --cpus-per-task=8
#SBATCH --mem=4G
#SBATCH --job-name=pack-ratings
#SBATCH --time=2:00:00
#SBATCH --open-mode=append
#SBATCH --requeue
memory=${SLURM_MEM_PER_NODE:-0}  # MiB; 0 where --mem=0 gives a task all
[ "$memory" -gt 0 ] || memory=4096
memory=$((memory * 3 / 4))  # the rest is for the page cache
parts=${1:?PARTS} packs=${2:?PACKS}
shift 2
index=$SLURM_ARRAY_TASK_ID
pack-sparse "$parts/part-$index.csv" "$@" -o "$packs/$index" --memory-bytes "${memory}M" --progress none
code=$?
# 75: this node cannot read the input now. Another try, perhaps on another node; scontrol ends this job meanwhile.
if [ "$code" = 75 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ]; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" && sleep 60
fi
exit "$code"
